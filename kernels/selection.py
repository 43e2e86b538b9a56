"""Covariance, top-k and quantiles over a batch of tokens, with equal bits on any mesh.

A threshold that changes by a rounding error selects other tokens. So results do not depend on the
number of devices or the order of rows. Means are sums of integers (`fixed_point`), ranks are found
by counting (`selection_search`). Ties are broken by the identity of a token, and random bits are a
function of key and identity. Nothing is sorted, and no array of the batch leaves its device.
Devices exchange a few integers at a time.

`implementation` is one of

    "xla"         jax.numpy, under `jit` with arrays in any sharding; not inside `shard_map`
    "pallas_tpu"  sweeps of a Mosaic kernel (`selection_tpu`) in a `shard_map`: rows are split over
                  the axes data and fsdp of `mesh`, which must divide them
    None          "xla" (reasons: docs/selection.md)
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from rlvr_jax.kernels import fixed_point, selection_search, selection_tpu
from rlvr_jax.kernels.plan import token_axes

IMPLEMENTATIONS = ("xla", "pallas_tpu")
# How arrays of an operation are split: by rows, or not at all.
ROWS, _WHOLE = True, False


class _Form(NamedTuple):
    """The sweeps over the tokens that an implementation is made of; results are of all devices.

    Fields:
      count: (bool) -> number of True ones.
      smallest: (values) -> the smallest one.
      kth: as `selection_search.kth_largest`.
      totals: for `fixed_point.masked_means`.
      product: (left, right, mask, means) -> the centred product, 0 off the mask, and its `kth`.
    """

    count: Callable
    smallest: Callable
    kth: Callable
    totals: fixed_point.Totals
    product: Callable


def covariance(
    advantage: Float[Array, "B T"],
    logp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    *,
    mesh: Mesh | None = None,
    implementation: str | None = None,
) -> Float[Array, "B T"]:
    """(A_t - mean A) · (logp_t - mean logp), means over the mask; 0 off it. Differentiable.

    Args:
      advantage, logp: of one dtype, float32 or float64.
      mask: the tokens that count.
    Returns:
      NaN on the mask if an array is not finite on it.
    Raises:
      ValueError: an implementation that is not known, or was named and cannot run.
    Source: Cui et al. 2025, https://arxiv.org/abs/2505.22617.
    """
    return _covariance(mesh, implementation, advantage, logp, mask)


def top_covariance(
    advantage: Float[Array, "B T"],
    logp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    k: int | Int[Array, ""],
    rollout_id: Int[Array, "B"],
    *,
    mesh: Mesh | None = None,
    implementation: str | None = None,
) -> tuple[Float[Array, "B T"], Bool[Array, "B T"]]:
    """`covariance`, and the `top_k` of its values on the mask. No gradient."""
    arrays = (advantage, logp, mask, jnp.asarray(k, jnp.int32), rollout_id)
    split = (ROWS, ROWS, ROWS, _WHOLE, ROWS)
    return _run(_top_covariance, mesh, implementation, arrays, split, (ROWS, ROWS))


def top_k(
    values: Float[Array, "B T"],
    eligible: Bool[Array, "B T"],
    k: int | Int[Array, ""],
    rollout_id: Int[Array, "B"],
    *,
    mesh: Mesh | None = None,
    implementation: str | None = None,
) -> Bool[Array, "B T"]:
    """Selects the k eligible tokens of largest value; all of them if there are fewer. No gradient.

    Ties go to the smaller `rollout_id`, then to the earlier position.

    Args:
      values: float32 or float64, not NaN where eligible.
      eligible: the tokens to select from.
      k: how many; may be traced.
      rollout_id: distinct for rows with eligible tokens.
    Returns:
      True on exactly min(k, number eligible) tokens.
    Raises:
      ValueError: as `covariance`.
    """
    arrays = values, eligible, jnp.asarray(k, jnp.int32), rollout_id
    return _run(_top_k, mesh, implementation, arrays, (ROWS, ROWS, _WHOLE, ROWS), ROWS)


def random_subset(
    eligible: Bool[Array, "B T"],
    k: int | Int[Array, ""],
    key: PRNGKeyArray | Shaped[Array, "2"],
    rollout_id: Int[Array, "B"],
    *,
    mesh: Mesh | None = None,
    implementation: str | None = None,
) -> Bool[Array, "B T"]:
    """Samples k eligible tokens uniformly without replacement; all of them if there are fewer.

    Each token has 32 random bits of (key, rollout_id, position); the k largest are selected. Ties
    go to the smaller `rollout_id`; two tokens have equal bits with probability 2⁻³².

    Args:
      key: PRNG key, used once.
      eligible, k, rollout_id: as for `top_k`, whose result and errors this function has.
    """
    arrays = eligible, jnp.asarray(k, jnp.int32), key, rollout_id
    return _run(_random_subset, mesh, implementation, arrays, (ROWS, _WHOLE, _WHOLE, ROWS), ROWS)


def quantile(
    values: Float[Array, "..."],
    mask: Bool[Array, "..."],
    fraction: float | Float[Array, ""],
    *,
    mesh: Mesh | None = None,
    implementation: str | None = None,
) -> Float[Array, ""]:
    """The quantile of the values on the mask with linear interpolation, as numpy's; no gradient.

    Let x_0 ≤ … ≤ x_{n-1} be the values on the mask and h = fraction · (n - 1). Then
    q = x_⌊h⌋ + (h - ⌊h⌋) (x_⌈h⌉ - x_⌊h⌋), and 0 if there is no value.

    Args:
      values: float32 or float64, finite on the mask; of any shape for "xla", else [B, T].
      mask: the values that count.
      fraction: in [0, 1].
    Raises:
      ValueError: as `covariance`.
    """
    arrays = values, mask, jnp.asarray(fraction, values.dtype)
    return _run(_quantile, mesh, implementation, arrays, (ROWS, ROWS, _WHOLE), _WHOLE)


def _top_covariance(form, advantage, logp, mask, k, rollout_id):
    centered, kth = _centered(form, advantage, logp, mask)
    priority = selection_search.ordered_bits(centered)
    kths = kth, form.kth
    return centered, selection_search.first_k(priority, mask, k, rollout_id, form.count, kths)


def _top_k(form, values, eligible, k, rollout_id):
    priority = selection_search.ordered_bits(values)
    return _first_k(form, priority, eligible, k, rollout_id)


def _random_subset(form, eligible, k, key, rollout_id):
    draws = _random_bits(key, rollout_id, eligible.shape[1])
    return _first_k(form, draws, eligible, k, rollout_id)


def _first_k(form, priority, eligible, k, rollout_id):
    kths = form.kth, form.kth
    return selection_search.first_k(priority, eligible, k, rollout_id, form.count, kths)


def _quantile(form, values, mask, fraction):
    sweeps = form.count, form.smallest, form.kth
    return selection_search.quantile(values, mask, fraction, *sweeps)


def _random_bits(key, rollout_id, num_tokens):
    """uint32 [B, T], each a function of the key, the row's id and the position."""

    def draw(row, column):
        # A key is random bits already; drawing from it would be a second round of the generator.
        token_key = jax.random.fold_in(jax.random.fold_in(key, row), column)
        return jax.random.key_data(token_key)[..., 0]

    return jax.vmap(jax.vmap(draw, (None, 0)), (0, None))(rollout_id, jnp.arange(num_tokens))


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _covariance(mesh, implementation, advantage, logp, mask):
    arrays = advantage, logp, mask
    return _run(_only_centered, mesh, implementation, arrays, (ROWS,) * 3, ROWS)


@_covariance.defjvp
def _covariance_jvp(mesh, implementation, primals, tangents):
    """The means of integers have no derivative of their own."""
    advantage, logp, mask = primals
    means = fixed_point.masked_means((advantage, logp), mask)
    count = jnp.maximum(jnp.sum(mask, dtype=jnp.int32), 1).astype(advantage.dtype)
    # Off the mask an array may be NaN, and 0 · NaN is NaN.
    left, right = (jnp.where(mask, x - mean, 0) for x, mean in zip(primals, means, strict=False))
    dleft, dright = (x - jnp.sum(jnp.where(mask, x, 0)) / count for x in tangents[:2])
    tangent = jnp.where(mask, dleft * right + left * dright, 0)
    return _covariance(mesh, implementation, *primals), tangent


def _centered(form, advantage, logp, mask):
    means = fixed_point.masked_means((advantage, logp), mask, form.totals)
    return form.product(advantage, logp, mask, means)


def _only_centered(form, advantage, logp, mask):
    return _centered(form, advantage, logp, mask)[0]


def _run(body, mesh, implementation, arrays, split, out):
    """`body(form, *arrays)` by an implementation.

    Args:
      split: which of the arrays are split by rows.
      out: the same of the results.
    """
    if implementation not in (None, *IMPLEMENTATIONS):
        raise ValueError(
            f"selection: implementation must be None or of {', '.join(IMPLEMENTATIONS)}, got"
            f" {implementation!r}"
        )
    if implementation != "pallas_tpu":
        return _in_plain_jax(body, *arrays)
    axes = () if mesh is None else token_axes(mesh)
    local = partial(_on_tpu, body, axes)
    if not axes:
        return local(*arrays)
    parts = math.prod(mesh.shape[axis] for axis in axes)
    if arrays[0].shape[0] % parts:
        raise ValueError(
            f"selection: the mesh axes {' and '.join(axes)} must divide the rows, got size {parts}"
            f" and B = {arrays[0].shape[0]}"
        )
    specs = {ROWS: PartitionSpec(axes), _WHOLE: PartitionSpec()}
    return jax.shard_map(
        local,
        mesh=mesh,
        in_specs=tuple(specs[rows] for rows in split),
        out_specs=jax.tree.map(specs.get, out),
        check_vma=False,
    )(*arrays)


@partial(jax.jit, static_argnums=0, inline=True)
def _in_plain_jax(body, *arrays):
    """`body` with sweeps of jax.numpy. Outside of `jit` its loops would be compiled in every call:
    JAX keeps a program of a loop by the function that is its body, which is another in each."""
    return body(XLA, *arrays)


def _on_tpu(body, axes, *arrays):
    """`body` with the sweeps of the TPU kernel over this device's tokens."""
    if reason := selection_tpu.obstacle(arrays):
        raise ValueError(f"selection: implementation 'pallas_tpu' cannot run: {reason}")

    def add(x):
        return jax.lax.psum(x, axes) if axes else x

    def count(chosen):
        return add(jnp.sum(chosen, dtype=jnp.int32))

    def largest(x):
        return jax.lax.pmax(x, axes) if axes else x

    def smallest(values):
        return -largest(-jnp.min(values))

    def product(advantage, logp, mask, means):
        centered, first = selection_tpu.product(advantage, logp, mask, means)
        return centered, partial(kth, first=first)

    kth = partial(selection_tpu.kth_largest, add=add)
    parts = math.prod(jax.lax.axis_size(axis) for axis in axes)
    totals = fixed_point.Totals(add, largest, selection_tpu.limb_sums, parts)
    return body(_Form(count, smallest, kth, totals, product), *arrays)


def _plain_product(advantage, logp, mask, means):
    centered = jnp.where(mask, (advantage - means[0]) * (logp - means[1]), 0)
    return centered, selection_search.kth_largest


def _plain_count(chosen):
    return jnp.sum(selection_search.row_counts(jnp.atleast_1d(chosen)), dtype=jnp.int32)


XLA = _Form(
    count=_plain_count,
    smallest=jnp.min,
    kth=selection_search.kth_largest,
    totals=fixed_point.Totals(),
    product=_plain_product,
)
