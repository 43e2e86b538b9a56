"""VPO: preference optimization with optimism, by the value that the implicit reward promises.

"Value-Incentivized Preference Optimization: A Unified Approach to Online and Offline RLHF"

    Δ_i  = Σ_t (logp - reference_logp)
    J*   = -β mean of Δ over calibration rows
    loss = -mean over pairs of log σ(β (Δ_w - Δ_l)) - α J*

α > 0 is the online form: optimistic, it moves probability away from the calibration rows and has
no lower bound, so keep it small; α < 0 is the offline form: pessimistic, it imitates them. A pair
is the k-th right and the k-th wrong rollout of a group. Made from the abstract, reviews and our own
derivation: β, α and the calibration rows (rows of another policy; `chosen_rows` is the other
natural choice) are ours.
"""

from rlvr_jax.experience import experience, rate_first, rehearse, shuffled_epochs
from rlvr_jax.objectives.advantages.group_relative import no_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.induced_value import (
    Calibration,
    off_policy_rows,
    value_incentive,
)
from rlvr_jax.objectives.regularizers.preferences import implicit_reward_loss
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import no_policy_loss
from rlvr_jax.types import Method, Recipe


def vpo(
    scale: float = 0.1,
    value_coefficient: float = 0.1,
    calibration: Calibration = off_policy_rows,
    rated: int = 1024,
    share: float = 0.25,
) -> Recipe:
    """DPO on right and wrong rollouts of a group, minus the induced value.

    Args:
      scale: of the implicit reward (β).
      value_coefficient: weight of the value (α), positive online and negative offline.
      calibration: (rollouts) -> bool [B], the rows on which the reward averages to 0.
      rated: prompts of which the first policy's answers are kept as calibration rows.
      share: calibration rows of a batch, as a share of its own.
    """
    rows = [rehearse(share, capacity=rated, solved=False)]
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[
                implicit_reward_loss(scale),
                value_incentive(value_coefficient, scale, calibration),
            ],
            aggregation=token_mean(),
        ),
        experience=experience([shuffled_epochs(), rate_first(rated, 1)], stages=rows),
    )


METHOD = Method(
    vpo,
    "Value-Incentivized Preference Optimization: A Unified Approach to Online and Offline RLHF",
    "",
    changes="surrogate, regularizer",
    evidence="reconstruction",
    left_out="refitting on all pairs of earlier rounds",
    reports="TL;DR and dialogue: favoured over DPO's kin (no number)",
    traps=(
        "α > 0 has no lower bound: keep it small or let it fall; sums over tokens grow with "
        "length; without pairs the linear term alone acts; with chosen rows and α < 0 it is DPO "
        "plus imitation"
    ),
)
