"""Implicit PRM: process rewards for free, from an outcome reward that is a log-ratio.

"Free Process Rewards without Process Labels", https://github.com/PRIME-RL/ImplicitPRM

    r(y) = β Σ_t log π(y_t) / π_ref(y_t), fitted to the outcomes of responses
    q_t  = β Σ_{i≤t} log-ratio_i        reward of a step = q at its end - q at the end before
    loss = mean over rollouts of the cross entropy of σ(r) and the outcome

The policy of this recipe is the reward model, and rollouts are its data. Token rewards, steps and
scores for best of n are functions (`token_log_ratio_reward`, `cumulative_reward`, `step_scores`,
`worst_step`). Other losses: `logistic_pairs` (DPO: only differences are fixed), `contrastive_pairs`
(NCA), `prospect` (KTO; the zero point is the mean log-ratio of the batch, where the authors' is
that of mismatched prompts and responses, and their paired variant is not here). r grows with the
length, so the cross entropy saturates on long answers.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.objectives.regularizers.preferences import (
    ImplicitLoss,
    ImplicitRewards,
    first_of_pairs,
    implicit_reward_loss,
)
from rlvr_jax.objectives.statistics.implicit_rewards import step_ends
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, step_sum
from rlvr_jax.types import Method, Recipe


def contrastive_pairs(given: ImplicitRewards) -> Float[Array, ""]:
    """Mean over the pairs of -log σ(r_w) - ½ log σ(-r_w) - ½ log σ(-r_l): level and difference.

    Source: NCA, https://github.com/huggingface/trl ("nca_pair").
    """
    better, worse = given.reward, given.reward[given.partner]
    pushed_up = -jax.nn.log_sigmoid(better)
    pushed_down = -(jax.nn.log_sigmoid(-better) + jax.nn.log_sigmoid(-worse)) / 2
    return masked_mean(pushed_up + pushed_down, first_of_pairs(given))


def cross_entropy(given: ImplicitRewards) -> Float[Array, ""]:
    """Mean over the rollouts with tokens of the cross entropy of σ(r) and being right."""
    sign = jnp.where(given.right, 1, -1).astype(given.reward.dtype)
    return -masked_mean(jax.nn.log_sigmoid(sign * given.reward), given.written)


def prospect(given: ImplicitRewards) -> Float[Array, ""]:
    """Mean over the rollouts with tokens of 1 - σ(±(r - βK)), + if right; each is bounded.

    Source: Ethayarajh et al. 2024, https://arxiv.org/abs/2402.01306, with the K of the batch itself
    in place of mismatched pairs of prompt and response.
    """
    sign = jnp.where(given.right, 1, -1).astype(given.reward.dtype)
    distance = given.reward - zero_point(given.reward, given.written)
    return masked_mean(1 - jax.nn.sigmoid(sign * distance), given.written)


def zero_point(values: Float[Array, "B"], where: Bool[Array, "B"]) -> Float[Array, ""]:
    """max(0, mean) without gradient: of log-ratios K, of implicit rewards β K."""
    return jnp.maximum(masked_mean(jax.lax.stop_gradient(values), where), 0)


def cumulative_reward(
    token_reward: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """q_t: sum of the token rewards up to and with t, 0 off the mask."""
    return jnp.where(mask, jnp.cumsum(jnp.where(mask, token_reward, 0), axis=1), 0)


def step_scores(
    cumulative: Float[Array, "B T"], steps: Steps
) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
    """Rewards and values of the steps, both at their last tokens and 0 elsewhere.

    The value of a step is q at its last token, its reward how much that is above the value of the
    step before.

    Args:
      cumulative: q.
      steps: of the rows.
    """
    ends = step_ends(steps)
    at_end = step_sum(jnp.where(ends, cumulative, 0), steps)
    before = jnp.pad(at_end[:, :-1], ((0, 0), (1, 0)))
    gain = jnp.where(steps.exists, at_end - before, 0)
    return jnp.where(ends, at_tokens(gain, steps), 0), jnp.where(ends, cumulative, 0)


def worst_step(scores: Float[Array, "B T"], steps: Steps) -> Float[Array, "B"]:
    """The smallest of the scores at the last tokens of the steps; 0 for rows without a step."""
    ends = step_ends(steps)
    lowest = jnp.min(jnp.where(ends, scores, jnp.inf), axis=1)
    return jnp.where(jnp.any(ends, axis=1), lowest, 0)


def implicit_prm(scale: float = 0.05, loss: ImplicitLoss = cross_entropy) -> Recipe:
    """A reward model that is fitted to outcomes through its log-ratio to a reference.

    Args:
      scale: of the log-ratio (β).
      loss: `cross_entropy`, `logistic_pairs`, `contrastive_pairs` or `prospect`.
    """
    return Recipe(objective=objective_of_terms([implicit_reward_loss(scale, loss)]))


METHOD = Method(
    implicit_prm,
    "Free Process Rewards without Process Labels",
    "https://github.com/PRIME-RL/ImplicitPRM",
    changes="surrogate",
    reports=(
        "MATH, best of n, Llama and Mistral answers: above a Math-Shepherd-like PRM on under 1/38 "
        "of its data; CE needs one response per prompt"
    ),
    traps=(
        "it fits a reward model, not who answers; r grows with the length, so long answers "
        "saturate it; pairs fix differences alone; another reference later shifts all token "
        "rewards"
    ),
)
