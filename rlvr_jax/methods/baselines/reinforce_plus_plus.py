"""REINFORCE++: returns whitened over the whole batch, with PPO's clip and no critic.

"REINFORCE++: A Simple and Efficient Approach for Aligning Large Language Models",
https://github.com/OpenRLHF/OpenRLHF

    r_t  = -β (old_logp_t - reference_logp_t), plus R on the last token
    A_t  = (Σ_{s ≥ t} γ^{s-t} r_s - mean) / std, over all tokens of the batch
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

`group_baseline` is the paper's REINFORCE++-baseline. It first centers the reward on its group, and
moves the KL from the reward to the loss (β k2, with gradient). The whitening is OpenRLHF's:
variance with n and a floor of 1e-8. verl has n - 1 and adds 1e-8. Long rollouts weigh more in the
whitening. β = 0.01 is OpenRLHF's value; its scripts of the baseline form have 1e-5.

Reports: steadier than GRPO and faster than PPO (no numbers).
Traps: Whitening of micro-batches is another method. A group of equal rewards has a small advantage.
"""

from typing import Any

from rlvr_jax.objectives import clipped_objective, group_mean, kl_penalty, reward_to_go, whitened
from rlvr_jax.objectives.statistics.divergences import k2
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import Discount, KLCoefficient


@arguments_of(clipped_objective, "clip_low", "clip_high")
def reinforce_plus_plus(
    discount: Discount = 1.0,
    kl_coefficient: KLCoefficient = 0.01,
    group_baseline: bool = False,
    **clip: Any,
) -> Recipe:
    """Whitens returns over the batch, with a clipped ratio and a KL in the reward or the loss.

    Args:
      group_baseline: whether rewards are centered on their group and the KL is in the loss;
        discount must then be 1.
    """
    if group_baseline and discount != 1:
        raise ValueError(
            f"reinforce_plus_plus: discount must be 1 with group_baseline, got {discount}"
        )
    if group_baseline:
        estimator = reward_to_go(center=group_mean)
        terms = [kl_penalty(kl_coefficient, k2)] if kl_coefficient else []
    else:
        estimator, terms = reward_to_go(discount, kl_coefficient), []
    return Recipe(clipped_objective(advantage=whitened(estimator), regularizers=terms, **clip))


METHOD = Method(
    reinforce_plus_plus, changes="advantage, reward", baseline="other", shown=LOSS_ON_BRACKETS
)
