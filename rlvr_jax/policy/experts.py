"""A layer of experts: a router sends every token to a few gated MLPs and mixes what they give."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int

from rlvr_jax.policy import products
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.policy.layout import HEADS, ROWS, on_tpu, partition

__all__ = ["mixture"]


def mixture(
    x: Float[Array, "n D"],
    router: Float[Array, "D E"],
    gate: Float[Array, "E D M"],
    up: Float[Array, "E D M"],
    output: Float[Array, "E M D"],
    activation: Callable[[Array], Array],
    experts_per_token: int,
    normalized: bool,
    mesh: Mesh | None = None,
) -> Float[Array, "n D"]:
    """Σ over the k likeliest experts e of p_e · (act(x gate_e) ∘ x up_e) output_e.

    p = softmax(x router), in float32, divided by the sum of the k if `normalized`. The visits are
    sorted by expert, so that each expert multiplies its own rows only and the work is that of k
    experts, whatever their number; no visit is dropped.

    On a mesh each device sorts the visits of its own rows, as sorted as a whole they would be those
    of all devices on each, and multiplies those to its own experts: of matrices split by M a TPU
    would fill up what is left of its lanes.

    Source: Qwen3 Technical Report, https://arxiv.org/abs/2505.09388; the sorted form is that of
    MegaBlocks, https://arxiv.org/abs/2211.15841.
    """
    own = partial(
        _mixture,
        activation=activation,
        experts_per_token=experts_per_token,
        normalized=normalized,
        tpu=on_tpu(mesh),
    )
    if mesh is None or mesh.size == 1:
        return own(x, router, gate, up, output)
    rows = partition(x, mesh, ROWS)
    (tensor,) = HEADS
    weights = PartitionSpec(), *[PartitionSpec(tensor)] * 3

    def shared(x, *matrices):
        first = jax.lax.axis_index(tensor) * matrices[-1].shape[0]
        return jax.lax.psum(own(x, *matrices, first=first), tensor)

    # Unchecked, as a kernel of Pallas does not say over which axes its result differs.
    given = jax.shard_map(
        shared, mesh=mesh, in_specs=(rows, *weights), out_specs=rows, check_vma=False
    )
    return given(x, router, gate, up, output)


def _mixture(
    x: Float[Array, "n D"],
    router: Float[Array, "D E"],
    gate: Float[Array, "e D M"],
    up: Float[Array, "e D M"],
    output: Float[Array, "e M D"],
    activation: Callable[[Array], Array],
    experts_per_token: int,
    normalized: bool,
    tpu: bool,
    first: Int[Array, ""] | int = 0,
) -> Float[Array, "n D"]:
    """What the experts first, …, first + e - 1 of `mixture` add to it."""
    tokens, experts, own = x.shape[0], router.shape[1], gate.shape[0]
    shares = jax.nn.softmax(products.matmul(x, router).astype(wide_dtype(x.dtype)), axis=-1)
    share, chosen = jax.lax.top_k(shares, experts_per_token)
    if normalized:
        share = share / jnp.sum(share, axis=-1, keepdims=True)

    # One's own experts come first, so that what others are given stands behind all that is read;
    # what the products make of it is anything.
    chosen = (chosen.reshape(-1) - first) % experts
    order = jnp.argsort(chosen)
    visits = x[order // experts_per_token]
    counts = jnp.bincount(chosen, length=experts).astype(jnp.int32)
    if own < experts:
        visits = _pulled_where(visits, (chosen[order] < own)[:, None])
    hidden = activation(products.ragged_dot(visits, gate, counts, tpu))
    hidden = hidden * products.ragged_dot(visits, up, counts, tpu)
    given = products.ragged_dot(hidden, output, counts, tpu)

    given = given[jnp.argsort(order)].reshape(tokens, experts_per_token, -1)
    if own < experts:
        given = jnp.where(chosen.reshape(tokens, -1, 1) < own, given, 0)
    return jnp.sum(given * share.astype(x.dtype)[:, :, None], axis=1)


@jax.custom_vjp
def _pulled_where(visits, here):
    """The visits; their gradient is 0 elsewhere. To write zeros into them would be a pass more."""
    return visits


_pulled_where.defvjp(
    lambda visits, here: (visits, here), lambda here, slope: (jnp.where(here, slope, 0), None)
)
