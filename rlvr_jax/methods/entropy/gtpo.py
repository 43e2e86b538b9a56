"""GTPO: spares the tokens that correct and incorrect responses share, and penalizes entropy.

"GTPO: Trajectory-Based Policy Optimization in Large Language Models",
https://github.com/winstonsmith1897/GTPO

    A_i  = R_i - mean;  A'_i = A_i - c H̄_i, 0 if H̄_i > θ
    loss = -mean_i (1/n_i) Σ_t λ_it A'_i logp_it

λ is 2 in rollouts with A > 0 and 0 in those with A < 0, on tokens in conflict. These are the
unbroken opening that rollouts of both signs share. For the shared ending, the factor is applied
once more. Elsewhere λ is 1. H̄ is the mean entropy of the rollout, θ `entropy_threshold`, c
`entropy_coefficient`. There is no reference and no ratio, so use one update per batch. Constants
are those of the authors' README (their code has 0.7 for ln 2). Their released loss also divides
each rollout by the length of its longer stretch in conflict.

Reports: Llama 8B and Qwen2.5-3B on GSM8K, MATH, AIME 2024: more stable than GRPO and SFT, without
KL or reference (figures).
Traps: A policy with an entropy above ln 2 nats learns nothing, because every rollout is dropped;
set `entropy_threshold=inf`. In groups of equal rewards A' = -c H̄, also for correct rollouts. The
GTPO of 2508.04349 is another method.
"""

import math

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Transform, group_centered, group_count, has_tokens, objective, part
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_rank, masked_sum
from rlvr_jax.objectives.statistics.ratios import on_policy_ratio
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.types import Mask, Method, Recipe, Rollouts, Shown, Values, replace
from rlvr_jax.types.hyperparameters import Bound, Finite, NonNegative

LN_2 = math.log(2)


@part(writes={"weight"})
def weigh_conflicts(positive: NonNegative, negative: NonNegative) -> Transform:
    """Weighs tokens in conflict by the sign of their rollout.

    weight' = weight · f, with f = `positive` in rollouts with A > 0 and `negative` in those with A
    < 0. The stretch from the start and the one up to the end each have this factor.

    Metrics: conflict_fraction (fraction of the tokens in conflict).
    """

    def apply(signals, context, state):
        forward, backward = find_conflicts(signals.advantage, context.rollouts)
        factor = jnp.where(signals.advantage > 0, positive, negative).astype(signals.weight.dtype)
        weight = jnp.where(forward, factor, 1) * jnp.where(backward, factor, 1)
        metrics = {"conflict_fraction": masked_mean(forward | backward, signals.mask)}
        return replace(signals, weight=signals.weight * weight), state, metrics

    return apply


def find_conflicts(advantage: Values, rollouts: Rollouts) -> tuple[Mask, Mask]:
    """Finds the stretches that a rollout shares, token by token, with rollouts of both signs.

    A token is in conflict if some rollout of the group with positive advantage and some with
    negative advantage have its id at its position. Rollouts of advantage 0 take no part.

    Args:
      advantage: equal on the tokens of a rollout.
    Returns:
      The tokens of the unbroken stretch from the start, and of that up to the end.
    """
    mask, (rows, width) = rollouts.mask, rollouts.mask.shape
    place = masked_rank(mask) - 1
    count = masked_count(mask, axis=1)[:, None]
    sign = jnp.sign(masked_sum(advantage, mask, axis=1))
    # Tokens side by side, from the first and from the last one; -1 where a rollout has none.
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    column = jnp.arange(width, dtype=jnp.int32)[None]
    text = jnp.full((rows, width), -1, jnp.int32)
    text = text.at[row, jnp.where(mask, place, width)].set(
        rollouts.tokens.astype(jnp.int32), mode="drop"
    )
    back = count - 1 - column
    reversed_text = jnp.take_along_axis(text, jnp.maximum(back, 0), axis=1)
    reversed_text = jnp.where(back >= 0, reversed_text, -1)
    from_start = _unbroken(text, sign, rollouts.group)
    from_end = _unbroken(reversed_text, sign, rollouts.group)
    # One column per rollout, so that the search is not repeated where the stretches are read.
    after = jnp.where(mask & (place >= from_start), column, width)
    before = jnp.where(mask & (place < count - from_end), column, -1)
    return (
        mask & (column < jnp.min(after, axis=1, keepdims=True, initial=width)),
        mask & (column > jnp.max(before, axis=1, keepdims=True, initial=-1)),
    )


def _unbroken(text, sign, group):
    """Number of tokens from place 0 on that a rollout shares with rollouts of both signs, [B, 1].

    One of either sign is the row itself, so it is compared with those of the opposite sign: with
    member after member of its group, as often as the largest group has members.
    """
    order, count = jnp.argsort(group), group_count(group)
    start = jnp.searchsorted(group[order], group).astype(jnp.int32)

    def compare(carry):
        member, shared = carry
        other = order[jnp.minimum(start + member, group.shape[0] - 1)]
        opposite = (member < count) & (sign * sign[other] < 0)
        return member + 1, shared | (opposite[:, None] & (text == text[other]))

    carry = (jnp.zeros((), jnp.int32), jnp.zeros(text.shape, bool))
    _, shared = jax.lax.while_loop(lambda carry: carry[0] < jnp.max(count), compare, carry)
    column = jnp.arange(text.shape[1], dtype=jnp.int32)[None]
    first_break = jnp.where(shared & (text >= 0), text.shape[1], column)
    return jnp.min(first_break, axis=1, keepdims=True, initial=text.shape[1])


@part(reads={"entropy"}, writes={"advantage"})
def charge_mean_entropy(threshold: Bound, coefficient: Finite) -> Transform:
    """Charges rollouts for their entropy, and drops the most uncertain.

    With H̄ the mean entropy of a rollout's tokens under the current policy: A' = A - c H̄, and
    A' = 0 if H̄ > threshold. Rollouts of advantage 0 are charged as well.

    Args:
      threshold: mean entropy above which a rollout is dropped, nats; inf drops none.
      coefficient: cost of the entropy, per nat (c).
    Metrics: dropped_rollouts_fraction (of those with tokens).
    """

    def apply(signals, context, state):
        mask, entropy = signals.mask, jax.lax.stop_gradient(context.stats.entropy)
        mean = masked_mean(entropy, mask, axis=1)[:, None]
        charged = signals.advantage - coefficient * mean
        advantage = jnp.where(mask & (mean <= threshold), charged, 0)
        dropped = masked_mean(mean[:, 0] > threshold, has_tokens(mask))
        metrics = {"dropped_rollouts_fraction": dropped.astype(mean.dtype)}
        return replace(signals, advantage=advantage), state, metrics

    return apply


def gtpo(
    positive_weight: NonNegative = 2.0,
    negative_weight: NonNegative = 0.0,
    entropy_threshold: Bound = LN_2,
    entropy_coefficient: Finite = 0.1,
) -> Recipe:
    """Applies the policy gradient to centered rewards, with weights for shared tokens.

    Args:
      positive_weight, negative_weight: weights of tokens in conflict, by the advantage's sign (λ).
      entropy_threshold: mean entropy, nats, above which a rollout is dropped (θ).
      entropy_coefficient: price of a nat of mean entropy (c).
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            transforms=[
                weigh_conflicts(positive_weight, negative_weight),
                charge_mean_entropy(entropy_threshold, entropy_coefficient),
            ],
            surrogate=importance_weighted(ratio=on_policy_ratio),
            aggregation=rollout_mean_token_mean(),
        )
    )


METHOD = Method(
    gtpo,
    changes="advantage, weight, surrogate",
    baseline="other",
    gradient="stopped",
    shown=Shown("brackets", "conflict_fraction", steps=300),
)
