"""Rollout correction: weighs tokens by how far the sampler is from the policy that it served.

verl, "Rollout correction", https://github.com/volcengine/verl (docs/algo/rollout_corr.md)

    r    = exp(old_logp - behaviour_logp), log r clamped to ±20
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ min(r, C) · max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

This is truncated importance sampling of tokens; C = 2 is verl's. The trainer's own ratio ρ is
separate from r. `rejections` adds further corrections:

- geometric rejection: `drop_by_ratio(low, high)`; by a divergence: `drop_by_divergence(limit)`
- DeepSeek-V3.2's mask of drifted failures: `drop_drifted_failures(limit)`

Other corrections replace the truncated weights of tokens, in a custom objective:

- whole rollouts: `truncate_importance(C, ratio=product_ratio)`
- IcePop and masked importance sampling: `band_importance(low, high)`
- without old log-probs: `weighted_reinforce(low=1, high=C - 1)` on the sampler's log-probs

Reports: According to users, uncorrected bfloat16 rollouts of another engine collapse on long runs.
Traps: The sampler's log-probs must be those of the scored distribution, with its temperature, top-k
and top-p. Otherwise r measures their difference.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Ratio, Transform, clipped_objective, masked_mean, sequence_ratio
from rlvr_jax.objectives.transforms.corrections import (
    OVER_BATCH,
    SAMPLED,
    check_band,
    sampler_divergence,
    truncate_importance,
)
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import Bound, Finite, HalfWidth


@part(reads=OVER_BATCH, writes={"mask"})
def drop_by_ratio(low: float, high: float, ratio: Ratio = sequence_ratio) -> Transform:
    """Takes rollouts with a ratio outside a band out of the loss and its denominators.

    Args:
      low, high: the band, 0 ≤ low ≤ high.
      ratio: `sequence_ratio` (the geometric mean of the token ratios) or `product_ratio`.
    Metrics: rejected_fraction (of the tokens).
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
    """Takes rollouts of large `sampler_divergence` out of the loss and its denominators.

    Args:
      limit: largest mean divergence of a rollout that stays, nats.
    Metrics: rejected_fraction (of the tokens).
    """

    def keep(context, mask):
        own = sampler_divergence(context.old_logp, context.rollouts.behaviour_logp, mask)
        return jnp.broadcast_to(own[:, None] <= limit, mask.shape)

    return _dropping(keep)


def _dropping(keep):
    def apply(signals, context, state):
        mask = signals.mask & keep(context, signals.mask)
        rejected = masked_mean(signals.mask & ~mask, signals.mask)
        return replace(signals, mask=mask), state, {"rejected_fraction": rejected}

    return apply


@part(reads=SAMPLED | {"logp"}, writes={"weight"})
def drop_drifted_failures(limit: Finite) -> Transform:
    """Sets the weight of tokens with A < 0 to 0 in rollouts that the policy no longer samples.

    weight' = 0 where A < 0 and mean_t(behaviour_logp - logp) > δ. A further penalty on tokens that
    the policy no longer writes is not necessary.

    Args:
      limit: δ, nats per token.
    Metrics: silenced_fraction (of the tokens).
    Source: DeepSeek-AI 2025, DeepSeek-V3.2, https://arxiv.org/abs/2512.02556.
    """

    def apply(signals, context, state):
        logp = jax.lax.stop_gradient(context.stats.logp)
        drift = masked_mean(context.rollouts.behaviour_logp - logp, signals.mask, axis=1)
        silenced = signals.mask & (signals.advantage < 0) & (drift[:, None] > limit)
        weight = jnp.where(silenced, 0, signals.weight)
        metrics = {"silenced_fraction": masked_mean(silenced, signals.mask)}
        return replace(signals, weight=weight), state, metrics

    return apply


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def rollout_correction(
    cap: Bound = 2.0, rejections: Sequence[Transform] = (), **clip: Any
) -> Recipe:
    """Applies a clipped ratio with the token mean and the truncated importance of each token.

    Args:
      cap: largest weight of a token (C).
      rejections: further corrections, `drop_by_ratio`, `drop_by_divergence` or
        `drop_drifted_failures`.
    """
    transforms = [truncate_importance(cap), *rejections]
    return Recipe(clipped_objective(transforms=transforms, **clip))


METHOD = Method(
    rollout_correction,
    "verl: rollout correction for the mismatch of sampler and trainer",
    "https://github.com/volcengine/verl",
    changes="weight, mask",
    shown=LOSS_ON_BRACKETS,
)
