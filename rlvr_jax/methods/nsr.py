"""NSR, PSR and W-REINFORCE: train on wrong answers, on right answers, or on both unequally.

"The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
https://github.com/TianHongZXY/RLVR-Decomposed

    A_i  = λ⁺ where the outcome is 1, -λ⁻ where it is 0
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i over the rollouts with A ≠ 0

(λ⁺, λ⁻) is (0, 1) for NSR, (1, 0) for PSR and (0.1, 1) for W-REINFORCE, the default, which the
paper finds best. There is no baseline: groups of equal outcomes are trained on as well. Outcomes
other than 0 and 1 are left out; the authors' W-REINFORCE keeps them at their reward. The code also
has a weighting of two separate means in the loss, off by default and not built here. It drops
rollouts before a batch is split, so that there are fewer updates; ours leave them out of their own.
Off-policy a wrong answer of large ρ pushes without bound: `dual_clip` bounds it.
"""

from rlvr_jax.objectives.advantages.outcome_credit import signed_by_outcome
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.informative import drop_neutral_rollouts
from rlvr_jax.types import Method, Recipe


def nsr(
    right: float = 0.1,
    wrong: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
) -> Recipe:
    """A fixed push for right answers and one against wrong answers, with a clipped ratio.

    Args:
      right: push for right answers (λ⁺); with 0 they are dropped.
      wrong: push against wrong answers (λ⁻); with 0 they are dropped.
      clip_low, clip_high: half-widths of the trust region (ε).
      dual_clip: bound of the loss where A < 0, in units of -A; None for none.
    """
    return Recipe(
        objective=objective(
            advantage=signed_by_outcome(right, wrong),
            transforms=[drop_neutral_rollouts()],
            surrogate=ppo_clip(low=clip_low, high=clip_high, dual=dual_clip),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    nsr,
    "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    "https://github.com/TianHongZXY/RLVR-Decomposed",
    changes="advantage, mask",
    reports=(
        "Qwen2.5-Math-7B on MATH: pass@1 63.2 to 75.7, pass@256 96.9 as before; trained on "
        "right answers alone 91.2"
    ),
    traps=(
        "groups of equal rewards train, as there is no baseline; a shaped reward is neither "
        "right nor wrong; on stale rollouts wrong answers are unbounded without a dual clip"
    ),
)
