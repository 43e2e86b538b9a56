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

from rlvr_jax.objectives.advantages.group_relative import no_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.preferences import implicit_reward_loss
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import no_policy_loss
from rlvr_jax.types import Method, Recipe


def dpo_q(scale: float = 0.1) -> Recipe:
    """DPO on right and wrong rollouts of a group.

    Args:
      scale: KL temperature of the token MDP (β).
    """
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[implicit_reward_loss(scale)],
            aggregation=token_mean(),
        )
    )


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
