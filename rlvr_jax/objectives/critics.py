"""The loss that fits a critic to returns."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["value_loss"]


def value_loss(
    values: Float[Array, "B T"],
    old_values: Float[Array, "B T"],
    returns: Float[Array, "B T"],
    clip: float,
) -> Float[Array, "B T"]:
    """½ max((V - G)², (V_clip - G)²) at every token, V_clip = V_old + clip(V - V_old, ±ε).

    The gradient is 0 where the clipped error is the larger one: a critic that has moved further
    than ε towards the return is not pulled on.

    Args:
      values: V, of the critic that is fitted; carries the gradient.
      old_values: V_old, when the batch was drawn.
      returns: G, the target: `generalized_advantages` plus V_old, before any whitening.
      clip: ε, half-width of the trust region around V_old.
    Source: Schulman et al. 2017, https://arxiv.org/abs/1707.06347, as in
      https://github.com/Open-Reasoner-Zero/Open-Reasoner-Zero.
    """
    moved = values - old_values
    bound = jax.lax.stop_gradient(old_values + jnp.clip(moved, -clip, clip))
    clipped = jnp.where(jnp.abs(moved) <= clip, values, bound)
    return jnp.maximum((values - returns) ** 2, (clipped - returns) ** 2) / 2
