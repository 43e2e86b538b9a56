"""Entropy of the uncertain tokens, held at the level where training began."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.core import Transform, describe
from rlvr_jax.objectives.masked import masked_mean
from rlvr_jax.objectives.scopes import above_quantile, within_response
from rlvr_jax.types import Rollouts, replace

__all__ = ["AnchorState", "anchored_entropy", "peak_entropy"]


class AnchorState(NamedTuple):
    """The entropy that is held (nats), and whether it has been measured."""

    anchor: Float[Array, ""]
    is_set: Bool[Array, ""]


def peak_entropy(
    entropy: Float[Array, "B T"], rollouts: Rollouts, quantile: float
) -> tuple[Float[Array, ""], Bool[Array, "B T"]]:
    """Mean entropy of the tokens that are uncertain for their response.

    A token is a peak if its entropy is strictly above the β quantile of its response; rows are
    averaged over their peaks, and the batch over its rows. A row without a peak counts as 0.

    Args:
      entropy: nats; carries the gradient, the choice does not.
      rollouts: whose mask says which tokens exist.
      quantile: β, in [0, 1).
    Returns:
      The mean, and which tokens are peaks.
    """
    sets = within_response(rollouts)
    peaks = above_quantile(jax.lax.stop_gradient(entropy), rollouts.mask, sets, quantile)
    return jnp.mean(masked_mean(entropy, peaks, axis=1)), peaks


def anchored_entropy(
    coefficient: float,
    quantile: float = 0.8,
    top_p: float = 0.8,
    include_crossing: bool = False,
) -> Transform:
    """Adds κ (H̄ - H*)² to the loss: it pulls the entropy up or down, to where it was.

    H̄ is the mean of `peak_entropy` over the entropies of the nuclei; H* is that of the first
    batch with tokens, and stays. So the first update is not changed.

    Args:
      coefficient: κ, at least 0.
      quantile: β, in [0, 1), of the entropies within a response.
      top_p: probability mass of the nucleus whose renormalized entropy is taken, in (0, 1].
      include_crossing: whether the token that reaches `top_p` belongs to the nucleus.
    Reads: nucleus_entropy. Writes: term. Metrics: anchored_entropy, entropy_anchor (nats),
      peak_share (of the tokens).
    Raises:
      ValueError: an argument outside its range.
    Source: https://github.com/Linn3a/siren.
    """
    if not coefficient >= 0:
        raise ValueError(f"anchored_entropy: coefficient must be at least 0, got {coefficient}")
    if not 0 <= quantile < 1:
        raise ValueError(f"anchored_entropy: quantile must be in [0, 1), got {quantile}")
    if not 0 < top_p <= 1:
        raise ValueError(f"anchored_entropy: top_p must be in (0, 1], got {top_p}")

    without_crossing = () if include_crossing else (("include_crossing", False),)

    def init(spec):
        del spec
        return AnchorState(jnp.zeros((), float), jnp.zeros((), bool))

    def apply(signals, context, state):
        rollouts = replace(context.rollouts, mask=signals.mask)
        mean, peaks = peak_entropy(context.stats.nucleus_entropy, rollouts, quantile)
        now = jax.lax.stop_gradient(mean).astype(state.anchor.dtype)
        any_token = jnp.any(signals.mask)
        anchor = jnp.where(state.is_set, state.anchor, now)
        held = any_token & state.is_set  # the first batch is its own anchor, to the last bit
        distance = jnp.where(held, mean - anchor.astype(mean.dtype), 0)
        signals = replace(signals, term=signals.term + coefficient * distance**2)
        moved = AnchorState(jnp.where(any_token, anchor, state.anchor), state.is_set | any_token)
        metrics = {
            "anchored_entropy": mean,
            "entropy_anchor": anchor,
            "peak_share": masked_mean(peaks, signals.mask),
        }
        return signals, moved, metrics

    label = describe("anchored_entropy", coefficient=float(coefficient), quantile=float(quantile))
    return Transform(
        init,
        apply,
        frozenset({"nucleus_entropy", "batch_statistics"}),
        label,
        options=(("top_p", top_p), *without_crossing),
    )
