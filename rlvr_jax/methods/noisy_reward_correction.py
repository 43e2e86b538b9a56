"""Noisy-reward correction: credit that allows for right answers which the verifier calls wrong.

"Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers"

    A_i  = outcome_i - (1 - ρ1), without a group baseline
    loss = mean_i (1/n_i) Σ_t max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε))

The forward correction (PGFC): -0.8 and +0.2 with ρ1 = 0.2, that of the paper's synthetic noise. The
backward one (PGBC) is `backward_corrected(ρ0, ρ1)` as reward with `leave_one_out()`, which for
rewards of 0 and 1 is RLOO over 1 - ρ0 - ρ1 (but 0 in a group of one, which the paper leaves without
a baseline). Dividing by the group's deviation would undo both. The paper's Algorithm 3 centres the
forward coefficients, which its own caveat calls degenerate; this is its Algorithm 4. The KL of
GRPO, which the paper leaves as it is, is not part of this recipe. ρ1 is estimated anew from answers
that a second verifier checks again by `updated_miss_rate`.
"""

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives.advantages.group_relative import plain_reward
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.noisy_rewards import forward_corrected
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def noisy_reward_correction(
    miss_rate: float = 0.2, clip_low: float = 0.2, clip_high: float = 0.2
) -> Recipe:
    """Outcomes minus the verifier's hit rate as advantages, with a clipped ratio.

    Args:
      miss_rate: share of right answers that the verifier calls wrong (ρ1).
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=plain_reward(),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[shape(forward_corrected(miss_rate))]),
    )


METHOD = Method(
    noisy_reward_correction,
    "Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers",
    "",
    changes="advantage, reward",
    evidence="reconstruction",
    left_out="the second verifier and the running estimate of the rate of misses",
    reports=(
        "Qwen2.5-Math-1.5B on DeepScaleR: 33.7 on average with a second verifier, 31.6 with rules "
        "alone"
    ),
    traps=(
        "dividing by the group's std undoes it, centring cancels it; all-right groups still push "
        "up by ρ1; compare it with RLOO, not GRPO; errors must not depend on style, nor ρ1 be "
        "estimated from the same groups"
    ),
)
