"""DPO as Q-learning: preference optimization, whose log-ratio is a reward of single tokens.

"From r to Q*: Your Language Model is Secretly a Q-Function"

    r(s, a) = β log π*(a|s) / π_ref(a|s) + V*(s) - V*(s')       V = β log Σ exp z,  Q = β z
    loss    = -mean over pairs of log σ(β Σ log-ratio_w - β Σ log-ratio_l)

In a pair with one prompt V*(s_0) cancels, so plain DPO is exact inverse Q-learning in the token
MDP. The token rewards, values and shaped rewards are functions (`token_log_ratio_reward`,
`logit_values`, `shaped_reward`); searching by the likelihood of π* is searching by reward. A pair
is the k-th right and the k-th wrong rollout of a group. Made from the abstract and our own
derivation; β is ours, the usual one of DPO. V from raw logits is one choice of many: shaped rewards
depend on it, the differences of their sums do not.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.objectives.regularizers.preferences import implicit_reward_loss
from rlvr_jax.objectives.statistics.implicit_rewards import row_of
from rlvr_jax.types import Method, Recipe


def logit_values(
    logp: Float[Array, "B T"],
    logsumexp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    scale: float,
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Q = β z of the sampled token and V = β log Σ exp z, 0 off the mask; Q - V = β logp.

    Args:
      logp, logsumexp: of the policy, nats.
      scale: β.
    Source: "From r to Q*: Your Language Model is Secretly a Q-Function".
    """
    value = jnp.where(mask, scale * logsumexp, 0)
    return jnp.where(mask, scale * logp, 0) + value, value


def following_value(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B T"]:
    """The value at the next token of the row, holes of the mask skipped; 0 after the last one."""
    rows, width = mask.shape
    position = jnp.where(mask, jnp.arange(width, dtype=jnp.int32), width)
    nearest = jax.lax.cummin(position, axis=1, reverse=True)
    following = jnp.pad(nearest[:, 1:], ((0, 0), (0, 1)), constant_values=width)
    padded = jnp.pad(jnp.where(mask, values, 0), ((0, 0), (0, 1)))
    return jnp.where(mask, padded[row_of(rows), following], 0)


def shaped_reward(
    token_reward: Float[Array, "B T"], values: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """r_t = β log-ratio_t + V_t - V_{t+1}: the sum over a row is Σ β log-ratio + V_0.

    Args:
      token_reward: β log-ratio.
      values: V, by `logit_values`.
      mask: the tokens that count.
    """
    change = values - following_value(values, mask)
    return jnp.where(mask, token_reward + change, 0)


def dpo_q(scale: float = 0.1) -> Recipe:
    """DPO on right and wrong rollouts of a group.

    Args:
      scale: KL temperature of the token MDP (β).
    """
    return Recipe(objective=objective_of_terms([implicit_reward_loss(scale)]))


METHOD = Method(
    dpo_q,
    "From r to Q*: Your Language Model is Secretly a Q-Function",
    "",
    changes="surrogate",
    evidence="reconstruction",
    left_out="beam search by likelihood",
    reports=(
        "beam search on a policy trained by DPO beats sampling from it, on summaries and dialogue"
    ),
    traps=(
        "groups of equal outcomes give no pair; implicit rewards of right and wrong rows both fall "
        "in training, which is no fault; log-ratios are rewards, not advantages"
    ),
)
