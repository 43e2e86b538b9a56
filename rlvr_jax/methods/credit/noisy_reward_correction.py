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

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives.advantages.group_relative import plain_reward
from rlvr_jax.objectives.arguments import check_positive, check_within
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.shaping import Reward, plain_outcome
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow
from rlvr_jax.types.parts import Function, part


@part
def backward_corrected(
    false_alarm_rate: float, miss_rate: float, base: Reward = plain_outcome
) -> Function:
    """(R - ρ0) / (1 - ρ0 - ρ1): an unbiased estimate of the true reward.

    Args:
      false_alarm_rate: ρ0, the share of wrong answers that are called right.
      miss_rate: ρ1, the share of right answers that are called wrong.
      base: the observed reward, 0 or 1.
    Raises:
      ValueError: a rate below 0, or their sum not below 1.
    """
    _check_rates("backward_corrected", false_alarm_rate, miss_rate)

    def reward(rollouts):
        return (base(rollouts) - false_alarm_rate) / (1 - false_alarm_rate - miss_rate)

    return reward


@part
def forward_corrected(miss_rate: float, base: Reward = plain_outcome) -> Function:
    """R - (1 - ρ1): ρ1 for an answer called right, ρ1 - 1 for one called wrong.

    Its mean is 0 over right answers and negative over wrong ones: in expectation wrong answers are
    pushed down and right ones left alone. To be used without a group baseline.

    Args:
      miss_rate: ρ1, the share of right answers that are called wrong.
      base: the observed reward, 0 or 1.
    Raises:
      ValueError: a rate outside [0, 1).
    """
    _check_rates("forward_corrected", 0.0, miss_rate)

    def reward(rollouts):
        return base(rollouts) - (1 - miss_rate)

    return reward


def updated_miss_rate(
    miss_rate: Float[Array, ""] | float,
    num_flipped: Float[Array, ""],
    num_positive: Float[Array, ""],
    appeal_share: float = 0.5,
    prior: float = 1e-5,
    decay: float = 0.9,
) -> Float[Array, ""]:
    """The moving average of ρ1, with an estimate from answers that were checked again.

    Some of the answers called wrong go to a second verifier, each with chance q; f of them it calls
    right. ρ̂1 = (f/q + a) / (f/q + p + 2a), and ρ1 ← decay · ρ1 + (1 - decay) · ρ̂1.

    Args:
      miss_rate: ρ1 so far.
      num_flipped: f.
      num_positive: p, answers that the first verifier called right.
      appeal_share: q.
      prior: a.
      decay: of the average, in [0, 1]; 0 gives ρ̂1 itself.
    Raises:
      ValueError: appeal_share or prior not positive, or a share above 1.
    """
    check_positive("updated_miss_rate", appeal_share=appeal_share, prior=prior)
    check_within(0, 1, "updated_miss_rate", appeal_share=appeal_share, decay=decay)
    missed = num_flipped / appeal_share + prior
    estimate = missed / (missed + num_positive + prior)
    return decay * miss_rate + (1 - decay) * estimate


def advantage_audit(
    corrected: Float[Array, "B T"], plain: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Mean and largest absolute difference of two advantages over the tokens, and their cosine."""
    distance = jnp.where(mask, jnp.abs(corrected - plain), 0)
    product = masked_sum(corrected * plain, mask)
    squares = masked_sum(corrected**2, mask) * masked_sum(plain**2, mask)
    cosine = product / jnp.sqrt(jnp.where(squares > 0, squares, 1))
    return masked_mean(distance, mask), jnp.max(distance), cosine


def _check_rates(function, false_alarm_rate, miss_rate):
    if not (false_alarm_rate >= 0 and miss_rate >= 0 and false_alarm_rate + miss_rate < 1):
        raise ValueError(
            f"{function}: rates of error must be at least 0 and below 1 together,"
            f" got {false_alarm_rate} and {miss_rate}"
        )


def noisy_reward_correction(
    miss_rate: float = 0.2, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2
) -> Recipe:
    """Outcomes minus the verifier's hit rate as advantages, with a clipped ratio.

    Args:
      miss_rate: share of right answers that the verifier calls wrong (ρ1).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=plain_reward(),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(stages=[shape(forward_corrected(miss_rate))]),
    )


METHOD = Method(
    noisy_reward_correction,
    "Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers",
    "",
    changes="advantage, reward",
    baseline="other",
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
