"""A layer of experts: a router sends every token to a few gated MLPs and mixes their outputs."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int

from rlvr_jax.policy import products
from rlvr_jax.policy.config import ModelConfig, wide_dtype
from rlvr_jax.policy.layout import HEADS, ROWS, on_tpu, partition


class Experts(NamedTuple):
    """The weights of a layer of experts."""

    router: Float[Array, "D E"]
    gate: Float[Array, "E D M"]
    up: Float[Array, "E D M"]
    output: Float[Array, "E M D"]


def mixture(
    x: Float[Array, "n D"],
    experts: Experts,
    activation: Callable[[Array], Array],
    experts_per_token: int,
    normalized: bool,
    mesh: Mesh | None = None,
    *,
    routes: Int[Array, "n k"] | None = None,
) -> tuple[Float[Array, "n D"], Int[Array, "n k"] | None]:
    """Σ over the k likeliest experts e of p_e · (act(x gate_e) ∘ x up_e) output_e.

    p = softmax(x router), in float32, divided by the sum of the k if `normalized`. Assignments are
    sorted by expert, so that each expert multiplies only its rows. The work is therefore that of k
    experts for any number of experts. No assignment is dropped.

    On a mesh each device sorts the assignments of its rows, since a global sort would move those of
    all devices to each one. It multiplies the assignments of its experts: a TPU would pad its lanes
    for matrices that are split by M.

    Given routes replace the choice and nothing else. The weights p_e are those of the router, so it
    has a gradient.

    Args:
      x: n tokens.
      experts: matrices and router of a layer.
      activation: act.
      experts_per_token: number of experts of a token (k).
      normalized: True: the weights of the k experts sum to 1.
      mesh: that tokens and experts are split over.
      routes: experts to use, by the number 1 + e; 0: those that the router chooses.
    Returns:
      The sum, and the routes that were used; None if none are given.

    Source: Qwen3 Technical Report, https://arxiv.org/abs/2505.09388; the sorted form is that of
    MegaBlocks, https://arxiv.org/abs/2211.15841; routes are replayed as in
    https://arxiv.org/abs/2510.11370.
    """
    own = partial(
        _mixture,
        activation=activation,
        experts_per_token=experts_per_token,
        normalized=normalized,
        tpu=on_tpu(mesh),
    )
    if mesh is None or mesh.size == 1:
        return own(x, experts, routes)
    rows = partition(x, mesh, ROWS)
    (tensor,) = HEADS
    weights = Experts._make([PartitionSpec(), *[PartitionSpec(tensor)] * 3])

    def shared(x, experts, routes):
        first = jax.lax.axis_index(tensor) * experts.output.shape[0]
        part, used = own(x, experts, routes, first)
        return jax.lax.psum(part, tensor), used

    # Unchecked, as a kernel of Pallas does not say over which axes its result differs.
    given = jax.shard_map(
        shared, mesh=mesh, in_specs=(rows, weights, rows), out_specs=rows, check_vma=False
    )
    return given(x, experts, routes)


def _mixture(
    x: Float[Array, "n D"],
    experts: Experts,
    routes: Int[Array, "n k"] | None = None,
    first: Int[Array, ""] | int = 0,
    *,
    activation: Callable[[Array], Array],
    experts_per_token: int,
    normalized: bool,
    tpu: bool,
) -> tuple[Float[Array, "n D"], Int[Array, "n k"] | None]:
    """What the experts first, …, first + e - 1 of `mixture` add to it."""
    router, gate, up, output = experts
    tokens, number, own = x.shape[0], router.shape[1], gate.shape[0]
    probabilities = jax.nn.softmax(products.matmul(x, router).astype(wide_dtype(x.dtype)), axis=-1)
    fractions, chosen = jax.lax.top_k(probabilities, experts_per_token)
    if routes is not None:
        chosen = jnp.where(routes > 0, routes.astype(chosen.dtype) - 1, chosen)
        fractions = jnp.take_along_axis(probabilities, chosen, axis=-1)
        routes = (chosen + 1).astype(routes.dtype)
    if normalized:
        fractions = fractions / jnp.sum(fractions, axis=-1, keepdims=True)

    # The device's own experts come first, so that rows of other experts are after all that is read;
    # their products are arbitrary. Assignment a of all is of token a % tokens.
    chosen = (chosen.T.reshape(-1) - first) % number
    order = jnp.argsort(chosen)
    # Compared, as a TPU adds up one by one what `bincount` would scatter.
    assigned = jax.nn.one_hot(chosen, number, axis=0, dtype=jnp.int32)
    counts = jnp.sum(assigned, axis=1, dtype=jnp.int32)
    sort = _Sort(order, jnp.argsort(order), chosen < own)
    for_gate, for_up = _sent(x, sort, tokens, 2, tpu)
    hidden = activation(products.ragged_dot(for_gate, gate, counts, tpu))
    hidden = hidden * products.ragged_dot(for_up, up, counts, tpu)
    # Before the product, which is linear: the hidden state is the narrower one.
    weights = fractions.astype(x.dtype).T.reshape(-1, 1)
    (weight,) = _sent(weights, sort, len(weights), 1, tpu)
    given = products.ragged_dot(hidden * weight, output, counts, tpu)
    return _summed((given,), sort, tokens, 1, tpu), routes


def no_routes(config: ModelConfig, *shape: int) -> Int[Array, "... L k"]:
    """Routes that leave the choice to the router, of tokens of any shape: 0 everywhere.

    Raises:
      ValueError: a model without experts.
    """
    if config.num_experts is None or config.experts_per_token is None:
        raise ValueError(
            "no_routes: config must be of a mixture of experts, whose routes can be recorded, got a"
            " dense model"
        )
    # One number more than experts: 0 is none of them.
    dtype = jnp.uint8 if config.num_experts < 256 else jnp.uint16
    return jnp.zeros((*shape, config.num_layers, config.experts_per_token), dtype)


class _Sort(NamedTuple):
    """Sorted token-expert assignments; of n tokens assignment v, unsorted, is by token v % n.

    Fields:
      order: [k n] of integers, the assignment at each place.
      place: [k n] of integers, the place of each assignment.
      here: [k n] of bool, whether it is to an expert that is here.
    """

    order: Array
    place: Array
    here: Array


def _with_gradient(function):
    return jax.custom_vjp(function, nondiff_argnums=(2, 3, 4))


# Each is the other's gradient. JAX would add up rows one by one, and two arrays of them in a pass
# of its own, which a TPU's compiler expects to take longer than to fetch both.
@_with_gradient
def _sent(
    x: Float[Array, "n D"], sort: _Sort, tokens: int, uses: int, tpu: bool
) -> tuple[Array, ...]:
    """The rows of n tokens in the order of their assignments, [kn, D], once for each use of them.
    The gradient of assignments elsewhere is 0."""
    return (x[sort.order % tokens],) * uses


@_with_gradient
def _summed(
    given: tuple[Array, ...], sort: _Sort, tokens: int, uses: int, tpu: bool
) -> Float[Array, "n D"]:
    """The sums of the results of a token's assignments here, by each use [kn, D]."""
    # Written out: a sum over an axis of assignments takes 2 to 5 times that, by TPU's compiler.
    wide = wide_dtype(given[0].dtype)
    total = jnp.zeros((tokens, given[0].shape[1]), wide)
    for each in [one[sort.place] for one in given]:
        for start in range(0, len(each), tokens):
            own = slice(start, start + tokens)
            total += jnp.where(sort.here[own, None], each[own], 0).astype(wide)
    total = total.astype(given[0].dtype)
    # Where the sum is wanted in another order, else all that is summed would be copied into it.
    return with_layout_constraint(total, Layout((0, 1))) if tpu else total


_sent.defvjp(
    lambda x, sort, *sizes: (_sent(x, sort, *sizes), sort),
    lambda tokens, uses, tpu, sort, slopes: (_summed(slopes, sort, tokens, uses, tpu), None),
)
_summed.defvjp(
    lambda given, sort, *sizes: (_summed(given, sort, *sizes), sort),
    lambda tokens, uses, tpu, sort, slope: (_sent(slope, sort, tokens, uses, tpu), None),
)
