"""Rollout correction: tokens are weighed by how far the sampler strayed from the policy it served.

verl, "Rollout correction", https://github.com/volcengine/verl (docs/algo/rollout_corr.md)

    r    = exp(old_logp - behaviour_logp), log r clamped to ±20
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ min(r, C) · max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

This is truncated importance sampling of tokens; C = 2 is verl's. The trainer's own ratio ρ stays
apart from r. The other corrections in use are parts with which this objective is composed:

- whole rollouts: `truncate_importance(C, ratio=product_ratio)`
- IcePop and masked importance sampling: `band_importance(low, high)`
- geometric rejection: `drop_by_ratio(low, high)`; by a divergence: `drop_by_divergence(limit)`
- DeepSeek-V3.2's mask of drifted failures: `drop_drifted_failures(limit)`
- without old log-probs: `weighted_reinforce(low=1, high=C - 1)` on the sampler's log-probs

The sampler's log-probs must be those of the distribution that the trainer scores, temperature and
cuts included; otherwise r measures these.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.methods.agents.asearcher import check_band
from rlvr_jax.methods.clipping.gspo import sequence_ratio
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.ratios import Ratio
from rlvr_jax.objectives.transforms.corrections import (
    OVER_BATCH,
    SAMPLED,
    sampler_divergence,
    truncate_importance,
)
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Finite, HalfWidth
from rlvr_jax.types.parts import part


def mean_of_rollouts(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, ""]:
    """Mean over the rollouts with tokens of the mean over their tokens; 0 for an empty mask."""
    return masked_mean(masked_mean(values, mask, axis=1), jnp.any(mask, axis=1))


@part(reads=OVER_BATCH, writes={"mask"})
def drop_by_ratio(low: float, high: float, ratio: Ratio = sequence_ratio) -> Transform:
    """Takes rollouts out of the loss and its denominators whose ratio lies outside a band.

    Args:
      low, high: the band, 0 ≤ low ≤ high.
      ratio: `sequence_ratio` (the geometric mean of the token ratios) or `product_ratio`.
    Metrics: rejected_share, of the tokens.
    Raises:
      ValueError: an empty band or a negative bound.
    """
    check_band("drop_by_ratio", low, high)

    def keep(context, mask):
        own = ratio(context.old_logp, context.rollouts.behaviour_logp, mask)
        return (low <= own) & (own <= high)

    return _dropping(keep)


@part(reads=OVER_BATCH, writes={"mask"})
def drop_by_divergence(limit: HalfWidth) -> Transform:
    """Takes rollouts out of the loss and its denominators whose `sampler_divergence` is too large.

    Args:
      limit: largest mean divergence that is kept, nats, at least 0.
    Metrics: rejected_share, of the tokens.
    """

    def keep(context, mask):
        own = sampler_divergence(context.old_logp, context.rollouts.behaviour_logp, mask)
        return jnp.broadcast_to(own[:, None] <= limit, mask.shape)

    return _dropping(keep)


@part(reads=SAMPLED | {"logp"}, writes={"weight"})
def drop_drifted_failures(limit: Finite) -> Transform:
    """Silences tokens with A < 0 of rollouts that the current policy has moved away from.

    weight' = 0 where A < 0 and mean_t(behaviour_logp - logp) > δ. The policy need not be pushed
    further from what it no longer writes.

    Args:
      limit: δ, nats per token.
    Metrics: silenced_share.
    Source: DeepSeek-AI 2025, DeepSeek-V3.2, https://arxiv.org/abs/2512.02556.
    """

    def apply(signals, context, state):
        logp = jax.lax.stop_gradient(context.stats.logp)
        drift = masked_mean(context.rollouts.behaviour_logp - logp, signals.mask, axis=1)
        silenced = signals.mask & (signals.advantage < 0) & (drift[:, None] > limit)
        weight = jnp.where(silenced, 0, signals.weight)
        metrics = {"silenced_share": masked_mean(silenced, signals.mask)}
        return replace(signals, weight=weight), state, metrics

    return apply


def _dropping(keep):
    def apply(signals, context, state):
        mask = signals.mask & keep(context, signals.mask)
        rejected = masked_mean(signals.mask & ~mask, signals.mask)
        return replace(signals, mask=mask), state, {"rejected_share": rejected}

    return apply


def rollout_correction(
    cap: float = 2.0,
    rejections: Sequence[Transform] = (),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """A clipped ratio on the token mean, under the truncated importance of each token.

    Args:
      cap: largest weight of a token (C).
      rejections: parts that take whole rollouts out, `drop_by_ratio` or `drop_by_divergence`.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            transforms=[truncate_importance(cap), *rejections],
        )
    )


METHOD = Method(
    rollout_correction,
    "verl: rollout correction for the mismatch of sampler and trainer",
    "https://github.com/volcengine/verl",
    changes="weight, mask",
    reports=(
        "reports of users: uncorrected bfloat16 rollouts of another engine collapse on long runs"
    ),
    traps=(
        "the sampler's log-probs must be taken at the same temperature and cuts, else the ratio "
        "measures those"
    ),
)
