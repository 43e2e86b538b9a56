"""CANON: split each group by entropy or length, and let the halves compete.

"CANON: Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
https://github.com/biuboomc/CANON

    high: A = μ (R - α m_low + β) + (1 - μ) (R - m_high)
    low:  A = μ (α R - m_high - β) + (1 - μ) (R - m_low)
    loss = mean_i Σ_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / L

The halves are those of the mean token entropy at sampling time, m their mean rewards; with α = 1
and β = 0, the defaults, the reward alone decides which one is better. For the length give
`condition=num_tokens, favors_high=False`: α below 1 then favors short answers. μ may follow a
schedule: `inter_share_of_success`, `restarting_inter_share`. A group of one has advantage 0; the
authors give it its reward. Rollouts without tokens (those that are cut, where these are masked) are
in no half.
"""

from rlvr_jax.objectives.advantages.conditional import (
    InterShare,
    Property,
    conditional_advantage,
    mean_sampling_entropy,
)
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def canon(
    condition: Property = mean_sampling_entropy,
    inter_share: float | InterShare = 1.0,
    tilt: float = 1.0,
    bonus: float = 0.0,
    favors_high: bool = True,
    max_length: float = 8192,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Recipe:
    """Rewards relative to the other half of the group, with a clipped ratio on token sums.

    Args:
      condition: property of the rollouts by which groups are split.
      inter_share: weight of the comparison with the other half (μ), or its schedule.
      tilt: scale of the rival's mean and of the disfavored half's rewards (α).
      bonus: added in the high half, taken away in the low one (β).
      favors_high: the half that α below 1 favors is the high one.
      max_length: budget of response tokens (L).
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
    """
    return Recipe(
        objective=objective(
            advantage=conditional_advantage(
                condition, inter_share, tilt, bonus, favors_high, divisor=max_length
            ),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    canon,
    "CANON: Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
    "https://github.com/biuboomc/CANON",
    changes="advantage, aggregation",
    reports=(
        "three models in maths and logic: by entropy above Dr. GRPO; by length with α below 1, "
        "more accuracy per token (abstract)"
    ),
    traps=(
        "with α not 1 or β not 0 groups of equal rewards train too; answers of equal length are "
        "split by their order; give max_length the run's budget, for it divides all advantages"
    ),
)
