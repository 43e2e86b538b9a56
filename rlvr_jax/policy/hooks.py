"""Hooks that read and change the hidden states of a model after one of its layers.

    hook = Hook(layer=1, apply=lambda h, carry: (h + controlled(basis, carry, h), carry))
    hidden, caches, carry = model.hooked(params, tokens, positions, hook, carry, caches)

A controller adds U_z h to the hidden state h, with U_z = Σ_k z_k B_k. Its code z changes less often
than tokens, when a switch fires. A policy over codes is trained only on these few actions.
Source: "Emergent temporal abstractions in autoregressive models enable hierarchical reinforcement
learning", from its abstract: a reconstruction of the hook and its records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.policy import products


@dataclass(frozen=True)
class Hook:
    """A change of the stream after a layer.

    Fields:
      layer: from 0.
      apply: (h [R, T, D], carry) -> (h, carry), pure.
    """

    layer: int
    apply: Callable[[Array, Any], tuple[Array, Any]]


def controlled(
    basis: Float[Array, "K D D"], codes: Float[Array, "R T K"], stream: Float[Array, "R T D"]
) -> Float[Array, "R T D"]:
    """U_z h at every place, U_z = Σ_k z_k B_k: a controller's term of the stream."""
    moved = products.einsum("kij,rtj->rtki", basis.astype(stream.dtype), stream)
    return products.einsum("rtk,rtki->rti", codes.astype(stream.dtype), moved)


class Codes(NamedTuple):
    """Codes of places, and where they changed.

    Fields:
      code: z, [R, T, K].
      fires: bool [R, T], β ≥ ½: the new code counts as an action.
    """

    code: Float[Array, "R T K"]
    fires: Bool[Array, "R T"]


def switched_codes(
    proposed: Float[Array, "R T K"],
    switch: Float[Array, "R T"],
    before: Float[Array, "R K"] | None = None,
) -> Codes:
    """z_t = β_t z_new + (1 - β_t) z_{t-1} from left to right.

    Args:
      proposed: z_new at every place.
      switch: weight of the new code at every place, in [0, 1] (β).
      before: the code before the first place; None: 0.
    """
    start = jnp.zeros_like(proposed[:, 0]) if before is None else before

    def step(code, place):
        new, fraction = place
        code = fraction[:, None] * new + (1 - fraction[:, None]) * code
        return code, code

    by_place = jnp.moveaxis(proposed, 1, 0), jnp.moveaxis(switch, 1, 0)
    _, codes = jax.lax.scan(step, start, by_place)
    return Codes(jnp.moveaxis(codes, 0, 1), switch >= 0.5)


def code_logp(
    code: Float[Array, "R T K"], mean: Float[Array, "R T K"], scale: float = 1.0
) -> Float[Array, "R T"]:
    """log of the density of a code under a Gaussian policy with independent entries.

    Args:
      code: as it was proposed, z_new.
      scale: standard deviation.
    """
    squares = jnp.sum(((code - mean) / scale) ** 2, axis=-1)
    return -squares / 2 - code.shape[-1] * jnp.log(scale * jnp.sqrt(2 * jnp.pi))


def code_loss(
    logp: Float[Array, "R T"], fires: Bool[Array, "R T"], advantage: Float[Array, "R"]
) -> Float[Array, ""]:
    """-Σ A log π(z_new) over the places where the switch fired: few actions, and no token's.

    No gradient flows into the advantage, and so none into the model that the codes act on.
    """
    own = jax.lax.stop_gradient(advantage).astype(logp.dtype)
    return -jnp.sum(jnp.where(fires, own[:, None] * logp, 0))
