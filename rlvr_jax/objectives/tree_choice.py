"""Which node of a search tree comes next: values, visits, and what is shown of the children."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

__all__ = ["mean_value", "upper_confidence", "visible_children"]


def upper_confidence(
    value: Float[Array, "..."],
    visits: Float[Array, "..."],
    parent_visits: Float[Array, "..."],
    weight: float,
    epsilon: float,
) -> Float[Array, "..."]:
    """V + c √((1 + ln N_parent) / (ε + N)).

    Args:
      value, visits: V and N, of nodes.
      parent_visits: N_parent, at least 1.
      weight, epsilon: c and ε.
    Source: ReST-RL, https://github.com/THUDM/ReST-RL.
    """
    return value + weight * jnp.sqrt((1 + jnp.log(parent_visits)) / (epsilon + visits))


def mean_value(value: Float[Array, "... K"], visits: Float[Array, "... K"]) -> Float[Array, "..."]:
    """Σ N V / Σ N over the children: what their parent is worth."""
    return jnp.sum(visits * value, axis=-1) / jnp.sum(visits, axis=-1)


def visible_children(value: Float[Array, "... K"], number: int) -> Bool[Array, "... K"]:
    """The children of highest value, of equal ones the first."""
    order = jnp.argsort(-value, axis=-1, stable=True)
    return jnp.argsort(order, axis=-1) < number
