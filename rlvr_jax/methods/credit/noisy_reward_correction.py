"""Noisy-reward correction: credit that allows for correct answers that the verifier rejects.

"Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers"

    A_i  = outcome_i - (1 - ρ1), without a group baseline
    loss = mean_i (1/n_i) Σ_t max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε))

This is the forward correction (PGFC). With ρ1 = 0.2 (`miss_rate`), the rate of the paper's
synthetic noise, A is 0.2 for accepted and -0.8 for rejected answers. This is the paper's Algorithm
4. Algorithm 3 centers these numbers, which the paper itself calls degenerate. The backward
correction (PGBC) is the reward (R - ρ0) / (1 - ρ0 - ρ1) with `leave_one_out()`, where ρ0 is the
rate of accepted incorrect answers. For rewards of 0 and 1 it is RLOO divided by 1 - ρ0 - ρ1, so it
only rescales the step. In a group of one its advantage is 0; the paper has no baseline there.

Left out: the second verifier; the running estimate of the rate of misses; the KL of GRPO.
Reports: Qwen2.5-Math-1.5B on DeepScaleR, mean accuracy in %: 33.7 with a second verifier, 31.6
without.
Traps: Centering, or dividing by the group's standard deviation, cancels the correction. Groups of
correct rollouts still have an advantage of ρ1. Compare with RLOO, not with GRPO. Verifier errors
must not depend on style, and ρ1 must not be estimated from the same groups.
"""

from typing import Annotated

from rlvr_jax.experience import Reward, experience, plain_outcome, shape
from rlvr_jax.objectives import clipped_objective, plain_reward, rollout_mean_token_mean
from rlvr_jax.types import Function, Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Range

MissRate = Annotated[
    float, Range(0, 1, open_high=True), "fraction of correct answers that the verifier rejects (ρ1)"
]


@part
def forward_corrected(miss_rate: MissRate, base: Reward = plain_outcome) -> Function:
    """R - (1 - ρ1): ρ1 for an accepted answer, ρ1 - 1 for a rejected one.

    The mean is 0 over correct answers and negative over incorrect ones: in expectation only
    incorrect answers are penalized. It must be used without a group baseline.

    Args:
      base: the observed reward, 0 or 1.
    """

    def reward(rollouts):
        return base(rollouts) - (1 - miss_rate)

    return reward


def noisy_reward_correction(
    miss_rate: MissRate = 0.2, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2
) -> Recipe:
    """Uses outcomes minus the verifier's hit rate as advantages, with a clipped ratio."""
    objective = clipped_objective(
        clip_low, clip_high, advantage=plain_reward(), aggregation=rollout_mean_token_mean()
    )
    return Recipe(objective, experience=experience(stages=[shape(forward_corrected(miss_rate))]))


METHOD = Method(
    noisy_reward_correction,
    changes="advantage, reward",
    baseline="other",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/shaped_fraction"),
)
