"""Transforms that change the weight of tokens, or take rows out of the loss."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.choices import random_choice
from rlvr_jax.objectives.statistics.covariance import token_covariance
from rlvr_jax.objectives.statistics.masked import fraction_of, masked_count, masked_mean
from rlvr_jax.objectives.statistics.ratios import is_clipped
from rlvr_jax.objectives.statistics.scopes import (
    Scope,
    scoped_quantile,
    within_batch,
    within_response,
)
from rlvr_jax.types import Signals, part, replace
from rlvr_jax.types.hyperparameters import Finite, Share


def is_chosen(signals: Signals) -> Bool[Array, "B T"]:
    """Tokens that parts treated specially: `Signals.chosen`, weight not 1, or penalty not 0."""
    changed = (signals.weight != 1) | (signals.penalty != 0)
    return signals.chosen | (signals.mask & changed)


@part(writes={"weight"})
def keep_top_entropy(fraction: Share, scope: Scope = within_batch) -> Transform:
    """Sets the weight of all tokens to 0, except those of highest entropy.

    Let H be the entropy (nats) and τ the (1 - fraction) quantile of H over the tokens of a set:
    weight' = weight · 1[H ≥ τ]. Ties at τ stay, so each set has at least one token. `mask` does not
    change, so an average still divides by all response tokens.

    Args:
      fraction: fraction of the tokens that stay.
      scope: the sets of tokens that are compared: the global batch, or each response.
    Metrics: entropy_threshold (nats, a mean over the tokens if there are several), used_fraction
      (of the tokens), chosen_fraction (the tokens taken out).
    Source: Wang et al. 2025, https://arxiv.org/abs/2506.01939.
    """

    def apply(signals, context, state):
        entropy = jax.lax.stop_gradient(context.stats.entropy)
        sets = scope(context.rollouts)
        threshold = scoped_quantile(entropy, signals.mask, sets, 1 - fraction)
        keep = signals.mask & (entropy >= threshold)
        signals = replace(signals, weight=jnp.where(keep, signals.weight, 0))
        thresholds = jnp.broadcast_to(threshold, entropy.shape)
        metrics = {
            "entropy_threshold": masked_mean(thresholds, signals.mask),
            "used_fraction": masked_mean(keep, signals.mask),
            "chosen_fraction": masked_mean(~keep, signals.mask),
        }
        return signals, state, metrics

    compared = set() if scope is within_response else {"batch_statistics"}
    return Transform(apply, reads={"entropy"} | compared)


@part(reads={"logp", "batch_statistics"}, writes={"weight"})
def drop_high_covariance(
    fraction: Share, low: float, high: float, choice: Callable = random_choice
) -> Transform:
    """Sets the weight of a few random tokens among those of high covariance to 0.

    A token is eligible if the ratio clip does not act on it and low < cov < high
    (`token_covariance`). Of n tokens, k = max(⌊fraction · n⌋, 1) eligible ones are sampled, or all
    eligible ones if there are fewer. `mask` does not change.

    Args:
      fraction: fraction of the tokens that are sampled.
      low, high: bounds of the covariance.
      choice: (eligible, k, key, rollout_id) -> bool [B, T], samples k of the eligible tokens.
    Metrics: chosen_fraction (of the tokens), eligible_fraction (the candidates).
    Source: Cui et al. 2025, https://arxiv.org/abs/2505.22617.
    """
    if not low < high:
        raise ValueError(f"drop_high_covariance: low must be below high {high}, got {low}")

    def apply(signals, context, state):
        logp = jax.lax.stop_gradient(context.stats.logp)
        covariance = token_covariance(signals.advantage, logp, signals.mask)
        eligible = signals.mask & ~is_clipped(signals) & (low < covariance) & (covariance < high)
        k = jnp.maximum(fraction_of(fraction, masked_count(signals.mask)), 1)
        dropped = choice(eligible, k, context.key, context.rollouts.rollout_id)
        signals = replace(signals, weight=jnp.where(dropped, 0, signals.weight))
        metrics = {
            "chosen_fraction": masked_mean(dropped, signals.mask),
            "eligible_fraction": masked_mean(eligible, signals.mask),
        }
        return signals, state, metrics

    return apply


@part(writes={"weight"})
def scale_weight(factor: Finite) -> Transform:
    """Multiplies the policy loss of every token by a constant; penalties do not change."""

    def apply(signals, context, state):
        del context
        return replace(signals, weight=factor * signals.weight), state, {}

    return apply


@part(reads={"off_policy"}, writes={"mask"})
def drop_off_policy() -> Transform:
    """Takes the rows of another policy out of the loss and of its denominators."""

    def apply(signals, context, state):
        mask = signals.mask & ~context.rollouts.records["off_policy"][:, None]
        return replace(signals, mask=mask), state, {}

    return apply
