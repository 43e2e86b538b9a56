"""The decisions of an objective about tokens."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float

from rlvr_jax.types.fields import pytree


@pytree
@dataclass(frozen=True)
class Signals:
    """Advantage, weight, mask, clip bounds and penalty of each token, set by the parts of a loss.

    Every field except the last is [B, T].

    A chain stops the gradients of the first five; gradient flows through the last three.

      advantage: signed credit. weight: factor on the token's policy loss; does not change
      denominators. mask: bool, which tokens exist for the loss; counts in denominators. clip_low,
      clip_high: half-widths of the trust region [1 - clip_low, 1 + clip_high]. chosen: bool, tokens
      that left the mask or were selected without a change of weight or
        penalty. For curves and reports (`is_chosen`); no loss reads it.
      ratio: current over old probability, of the token or of its response.
      penalty: term added to the token's loss, not multiplied by `weight`.
      term: scalar, added to the aggregated loss: terms that are not an average over tokens.
    """

    advantage: Float[Array, "B T"]
    weight: Float[Array, "B T"]
    mask: Bool[Array, "B T"]
    clip_low: Float[Array, "B T"]
    clip_high: Float[Array, "B T"]
    chosen: Bool[Array, "B T"]
    ratio: Float[Array, "B T"]
    penalty: Float[Array, "B T"]
    term: Float[Array, ""]

    @classmethod
    def neutral(cls, mask: Bool[Array, "B T"], dtype: DTypeLike) -> Signals:
        """Signals before any decision: advantage 0, weight 1, ratio 1, no clip."""
        zeros, ones = jnp.zeros(mask.shape, dtype), jnp.ones(mask.shape, dtype)
        unbounded = jnp.full(mask.shape, jnp.inf, dtype)
        nothing = jnp.zeros((), dtype)
        none = jnp.zeros(mask.shape, bool)
        return cls(zeros, ones, mask, unbounded, unbounded, none, ones, zeros, nothing)
