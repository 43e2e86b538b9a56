"""The optimizer's step, which a gradient that is of no use does not take."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool


def step_where(
    usable: Bool[Array, ""],
    optimizer: optax.GradientTransformation,
    grads: Any,
    optimizer_state: Any,
    params: Any,
) -> tuple[Any, Any]:
    """Parameters and optimizer state after a step, or the same ones where it is not usable."""
    # optax mixes dtypes, which a caller who is strict about promotion would be refused.
    with jax.numpy_dtype_promotion("standard"):
        changes, stepped = optimizer.update(grads, optimizer_state, params)
        changed = optax.apply_updates(params, changes)
    return jax.tree.map(partial(jnp.where, usable), (changed, stepped), (params, optimizer_state))
