"""HAPO: one score from the entropy of a token determines its credit and its trust region.

"From Uniform to Heterogeneous: Tailoring Policy Optimization to Every Token's Nature",
https://github.com/starriver030515/HAPO

    A_i  = (R_i - μ) / (σ + 1e-6) over the tokens of the group, or GRPO's if some |A| ≥ 5
    ĥ_t  in [-1, 1] from ln H, 0 at its 0.8 quantile over the batch (`entropy_score`)
    ε_low,t = ε_low (1 - α ĥ) where ĥ ≤ 0;  ε_high,t = ε_high (1 + α ĥ) where ĥ > 0
    A'_t = A (1 + β ĥ) where ĥ > 0 and ρ left, or ĥ ≤ 0 and ρ is in, the inner half of the region
    l_t  = max(-A' ρ, -A' clip(ρ, 1 - ε_low,t, 1 + ε_high,t)), at most -c A' where A' < 0
    loss = Σ l_t / Σ n_i

α, β and c are `clip_strength`, `credit_strength` and `dual_clip`. The released code has |ĥ| for ĥ,
by a sign error, and its test of |A| includes padding. `released=True` reproduces both. Its
statistics are those of a micro-batch, here those of the batch. Constants are the authors'. Their
data pipeline is that of `dapo`.

Left out: a sampling temperature that follows the entropy of each token (`hapo_temperature`); the
filter and the length penalty of DAPO.
Reports: maths at several model sizes: mean accuracy above DAPO (abstract, no numbers).
Traps: The released code treats certain tokens as uncertain ones. The most certain token of a batch
gets no credit within the inner half of its region. Statistics per micro-batch depend on the split.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.kernels import selection_search
from rlvr_jax.objectives import Transform, clipped_objective, count_of_sets, part
from rlvr_jax.objectives.statistics.groups import group_z_score, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean, masked_min
from rlvr_jax.objectives.statistics.scopes import (
    Sets,
    scoped_max,
    scoped_mean,
    scoped_std,
    within_batch,
    within_group,
)
from rlvr_jax.types import LOSS_ON_BRACKETS, Mask, Method, Recipe, Rollouts, Values, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    DualClip,
    Epsilon,
    NonNegative,
    Unit,
)


@part(writes={"advantage"})
def token_normalized(limit: Bound, epsilon: Epsilon = 1e-6, padding: bool = False) -> Transform:
    """(R - μ) / (σ + ε) with mean and population deviation over the tokens of the group.

    Each rollout counts by its length. A group in which some |A| reaches the limit gets (R - mean) /
    (std + ε) over its rollouts instead, std with n - 1.

    Args:
      limit: largest |A| of a group that is normalized over its tokens.
      padding: whether the test of |A| includes positions off the mask, with a reward of 0, as in
        the released code. The result then depends on the width of the padding.
    Metrics: fell_back_fraction (of the rollouts with tokens).
    """

    def apply(signals, context, state):
        mask, sets = signals.mask, within_group(context.rollouts)
        reward, group = context.rollouts.reward, context.rollouts.group
        rewards = jnp.broadcast_to(reward[:, None], mask.shape)
        mean = scoped_mean(rewards, mask, sets)
        deviation = scoped_std(rewards, mask, sets) + epsilon
        by_tokens = (rewards - mean) / deviation
        size = jnp.where(mask, jnp.abs(by_tokens), jnp.abs(mean / deviation) if padding else 0)
        fell_back = scoped_max(size, jnp.ones_like(mask), sets) >= limit
        by_rollouts = group_z_score(reward, group, epsilon)
        advantage = jnp.where(fell_back, by_rollouts[:, None], by_tokens)
        fraction = masked_mean(fell_back[:, 0], has_tokens(mask)).astype(advantage.dtype)
        signals = replace(signals, advantage=jnp.where(mask, advantage, 0))
        return signals, state, {"fell_back_fraction": fraction}

    return apply


@part(reads={"entropy", "batch_statistics"}, writes={"clip_high", "clip_low"})
def adapt_clip(strength: NonNegative, quantile: Unit, signed: bool = True) -> Transform:
    """Widens the trust region of certain tokens downwards, of uncertain ones upwards.

    Below the pivot clip_low' = clip_low (1 - α ĥ), above it clip_high' = clip_high (1 + α ĥ).

    Args:
      strength: largest relative change of a half-width (α).
      quantile, signed: of `entropy_score`.
    """

    def apply(signals, context, state):
        entropy, rollouts = context.stats.entropy, context.rollouts
        score = entropy_score(entropy, signals.mask, rollouts, quantile, signed)
        low = jnp.where(score > 0, 1, 1 - strength * score) * signals.clip_low
        high = jnp.where(score > 0, 1 + strength * score, 1) * signals.clip_high
        return replace(signals, clip_low=low, clip_high=high), state, {}

    return apply


def entropy_score(
    entropy: Values, mask: Mask, rollouts: Rollouts, quantile: float, signed: bool = True
) -> Values:
    """ĥ from e = ln max(H, 1e-8) and its quantile c, of nearest rank, over the batch.

    h = (e - c) / s with s = √max(mean (e - c)², 1e-8). ĥ = h / max h where h > 0, h / |min h|
    elsewhere; both extremes are at least 1e-8. ĥ is 0 off the mask.

    Args:
      entropy: nats.
      mask: response tokens that count, bool [B, T].
      rollouts: the batch; pivot, scale and extremes are those of its tokens.
      quantile: of the pivot c, in [0, 1].
      signed: False: |ĥ|, the sign error of the released code. A very certain token is then treated
        as a very uncertain one.
    """
    log_entropy = jnp.log(jnp.maximum(jax.lax.stop_gradient(entropy), 1e-8))
    pivot = scoped_nearest_quantile(log_entropy, mask, within_batch(rollouts), quantile)
    distance = jnp.where(mask, log_entropy - pivot, 0)
    scale = jnp.sqrt(jnp.maximum(masked_mean(distance**2, mask), 1e-8))
    scaled = distance / scale
    highest = jnp.maximum(masked_max(scaled, mask), 1e-8)
    lowest = jnp.maximum(-masked_min(scaled, mask), 1e-8)
    score = jnp.where(scaled > 0, scaled / highest, scaled / lowest)
    return score if signed else jnp.abs(score)


def scoped_nearest_quantile(
    values: Values, mask: Mask, sets: Sets, fraction: float
) -> Float[Array, "..."]:
    """The element of the set at rank fraction · (n - 1), rounded, halves to the even rank.

    0 for an empty set. `values` must be finite on the mask.

    Args:
      values: of the tokens, [B, T], finite on the mask.
      mask: tokens that count, bool [B, T].
      sets: sets of tokens with one quantile each, such as `within_batch(rollouts)`.
      fraction: level of the quantile, in [0, 1].
    """

    def count(chosen):
        return count_of_sets(chosen, sets.reduce)

    values = jax.lax.stop_gradient(values)
    total = count(mask)
    last = jnp.maximum(total - 1, 0)
    rank = jnp.round(fraction * last.astype(values.dtype)).astype(jnp.int32)
    return jnp.where(total > 0, selection_search.of_rank(rank, values, mask, count), 0)


@part(reads={"entropy", "batch_statistics"}, writes={"advantage"})
def redistribute_credit(strength: NonNegative, quantile: Unit, signed: bool = True) -> Transform:
    """Pays uncertain tokens more once they move, and certain ones less while they do not.

    A^e = A (1 + β ĥ). The inner half is 1 - clip_low/2 < ρ < 1 + clip_high/2. Above the pivot, the
    advantage is A inside and A^e outside; below the pivot, A^e inside and A outside.

    Args:
      strength: largest relative change of the advantage (β).
      quantile, signed: of `entropy_score`.
    """

    def apply(signals, context, state):
        entropy, rollouts = context.stats.entropy, context.rollouts
        score = entropy_score(entropy, signals.mask, rollouts, quantile, signed)
        low, high = 1 - signals.clip_low / 2, 1 + signals.clip_high / 2
        inside = (signals.ratio > low) & (signals.ratio < high)
        scaled = signals.advantage * (1 + strength * score)
        advantage = jnp.where(inside == (score > 0), signals.advantage, scaled)
        return replace(signals, advantage=advantage), state, {}

    return apply


def hapo(
    pivot: Unit = 0.8,
    clip_strength: NonNegative = 1.0,
    credit_strength: NonNegative = 1.0,
    limit: Bound = 5.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual_clip: DualClip = 10.0,
    released: bool = False,
) -> Recipe:
    """Redistributes token-normalized advantages by entropy, in a trust region that follows it.

    Args:
      pivot: quantile of the log entropy at which the score is 0.
      clip_strength: factor of the score in the trust region (α).
      credit_strength: factor of the score in the advantage (β).
      limit: limit of |A|; a group that reaches it falls back to GRPO's advantages.
      released: whether the two errors of the released code are reproduced.
    """
    advantage = token_normalized(limit, padding=released)
    transforms = [
        adapt_clip(clip_strength, pivot, signed=not released),
        redistribute_credit(credit_strength, pivot, signed=not released),
    ]
    objective = clipped_objective(
        clip_low, clip_high, advantage=advantage, transforms=transforms, dual_clip=dual_clip
    )
    return Recipe(objective)


METHOD = Method(hapo, changes="advantage, surrogate", shown=LOSS_ON_BRACKETS)
