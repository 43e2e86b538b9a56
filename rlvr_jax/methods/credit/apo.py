"""APO: weakens the KL for rare successes and penalizes long incorrect responses more.

"Enhancing Reasoning Ability of MLLMs via Asymmetric Policy Optimization",
https://github.com/Indolent-Kawhi/View-R1

    A_i  = (R_i - mean) / (std + 1e-9); times 2 - b^-Δ_i for incorrect responses that are Δ_i > 0
           tokens longer than the mean correct response of their group
    w_i  = 1 - exp(-e (1 - d)) where A_i > 0 in a mixed group, else 1
    loss = mean_i (1/n_i) Σ_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + λ w_i k3(π ‖ π_ref)]

d is the fraction of incorrect rollouts. A rollout is correct if the integer part of its reward is
at least 1. The factor b is `length_base`, λ is `kl_coefficient`. The values of λ and the clip are
those of their run.

Reports: View-R1-3B (Qwen2.5-VL-3B): about 7 % above its base model on the mean of reasoning
benchmarks, and above models of 7B to 11B.
Traps: With the authors' b = 1.00001, an excess of 1000 tokens increases the penalty by only 1 %.
Rewards below 1 are never correct, so fractional rewards make every rollout incorrect. An incorrect
response above the group's mean gains by length.
"""

import math
from typing import Annotated

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives import Context, Transform, clipped_objective, kl_penalty, masked_count
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_sum
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.types import LOSS_ON_BRACKETS, Ids, Method, Recipe, Rows, Signals, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, KLCoefficient, Range

LengthBase = Annotated[
    float, Range(1, open_low=True, finite=False), "growth of the factor with excess length (b)"
]


@part(writes={"advantage"})
def amplify_long_errors(base: LengthBase = 1.00001, epsilon: Epsilon = 1e-9) -> Transform:
    """Multiplies the advantage by `long_error_factor`.

    With graded rewards an incorrect rollout can have a positive advantage. Then the factor rewards
    its length.

    Args:
      epsilon: added to the number of correct rollouts.
    """

    def apply(signals, context, state):
        reward, group = context.rollouts.reward, context.rollouts.group
        length = masked_count(context.rollouts.mask, axis=1)
        factor = long_error_factor(reward, group, length, base, epsilon)
        return replace(signals, advantage=signals.advantage * factor[:, None]), state, {}

    return apply


def long_error_factor(
    reward: Rows, group: Ids, length: Ids, base: float, epsilon: float = 1e-9
) -> Rows:
    """2 - b^-Δ for incorrect rollouts Δ > 0 tokens above the mean correct length, else 1.

    Groups without a correct rollout have 1 everywhere. As in the authors' code, the mean divides by
    the number of correct rollouts plus ε.

    Args:
      reward: reward of each row, [B]; correct if its integer part is at least 1.
      group: group of each row, int [B].
      length: response tokens. A correct rollout without tokens is not part of the mean.
      base: growth of the factor with the excess length, above 1 (b).
      epsilon: added to the number of correct rollouts.
    """
    correct, tokens = reward_is_correct(reward) & (length > 0), length.astype(reward.dtype)
    count = group_count(group, correct)
    excess = tokens - group_sum(tokens, group, correct) / (count.astype(tokens.dtype) + epsilon)
    compared = ~correct & (count > 0) & (excess > 0)
    return jnp.where(compared, 2 - jnp.exp(-jnp.maximum(excess, 0) * math.log(base)), 1)


def reward_is_correct(reward: Float[Array, "B"]) -> Bool[Array, "B"]:
    """Whether the integer part of the reward is at least 1."""
    return jnp.trunc(reward) >= 1


def kl_weight_by_difficulty(signals: Signals, context: Context) -> Float[Array, "B T"]:
    """1 - exp(-e (1 - d)) for tokens of positive advantage in mixed groups, else 1.

    The KL of a success vanishes on hard prompts (d near 1) and is almost full on easy ones.
    """
    reward, group = context.rollouts.reward, context.rollouts.group
    difficulty = 1 - group_mean(reward_is_correct(reward).astype(reward.dtype), group)
    eased = -jnp.expm1(-math.e * (1 - difficulty))
    mixed = (difficulty > 0) & (difficulty < 1)
    return jnp.where((signals.advantage > 0) & mixed[:, None], eased[:, None], 1)


def apo(
    length_base: LengthBase = 1.00001,
    kl_coefficient: KLCoefficient = 1e-3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-9,
) -> Recipe:
    """GRPO with a KL weighted by difficulty and a length factor for incorrect responses."""
    kl = [kl_penalty(kl_coefficient, weight=kl_weight_by_difficulty)] if kl_coefficient else []
    objective = clipped_objective(
        clip_low,
        clip_high,
        epsilon=epsilon,
        transforms=[amplify_long_errors(length_base, epsilon)],
        regularizers=kl,
        aggregation=rollout_mean_token_mean(),
    )
    return Recipe(objective)


METHOD = Method(apo, changes="advantage, regularizer", shown=LOSS_ON_BRACKETS)
