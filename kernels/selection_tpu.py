"""The sweeps of `selection` on TPU: a Mosaic kernel that reads every token once.

A sweep goes over the batch in blocks. Its sums stay in registers, [8, 128] integers per sum, so
nothing crosses lanes before the end. One sweep sums the limbs of several arrays (`fixed_point`),
one the centred product and counts of tokens that reach each of 15 candidates, one only the counts.
With 15 candidates a sweep determines four bits of a threshold. A search takes 8 rounds and 8
messages between devices, the bisection of the XLA form 32.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxtyping import Array, Bool, Float, Int, UInt

from rlvr_jax.kernels import fixed_point, tpu_blocks

_SUBLANES, _LANES = 8, 128
# Rows that are handled together: a tile of int8, the mask's type, has 32 sublanes.
ROWS = 32
# A block of float32 is 1 MiB; with 16 registers of it at a time the sums stay in registers.
_BLOCK_ROWS, _BLOCK_COLUMNS = 512, 512
BITS = 4
# Each of the 1024 places of a register adds up as many limbs as fit.
_MOST = _SUBLANES * _LANES * fixed_point.NARROW.at_once
# Block indices are int32 for Mosaic; a Python 0 is not where 64-bit numbers are enabled.
_ZERO = np.int32(0)
_SIGN = np.uint32(1 << 31)


def obstacle(arrays: Sequence[Array]) -> str | None:
    """Why the kernel cannot sweep over such arrays, the first one [B, T], on the current device."""
    platform, kind = tpu_blocks.device()
    if platform != "tpu":
        return f"it needs a TPU, the device is {kind!r}"
    for x in arrays:
        if x.dtype.itemsize == 8 and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
            return f"no array may have 64 bits an element, got {x.dtype}"
    if arrays[0].ndim != 2 or 0 in arrays[0].shape:
        return f"arrays must be [B, T] and not empty, got shape {arrays[0].shape}"
    if arrays[0].size > _MOST:
        return f"a device may have {_MOST} tokens, got {arrays[0].size}"
    return None


def limb_sums(
    values: Sequence[Float[Array, "B T"]], exponents: Sequence[Int[Array, ""]], most: int
) -> list[list[Int[Array, ""]]]:
    """As `fixed_point.plain_limb_sums`, in one sweep."""
    del most
    limbs = fixed_point.NARROW

    def body(blocks, scales):
        return [
            fixed_point.limb(x, scales.at[i], index, limbs)
            for i, x in enumerate(blocks)
            for index in range(limbs.number)
        ], []

    scales = [fixed_point.limb_scales(e, limbs, jnp.dtype(jnp.float32)) for e in exponents]
    num_sums = len(values) * limbs.number
    lanes, _ = _sweep(body, values, jnp.stack(scales), num_sums, name="limb_sums")
    sums = []
    for own in lanes.reshape(len(values), limbs.number, _SUBLANES, _LANES):
        digits = fixed_point.carried([jnp.zeros_like(own[0]), *own], limbs.bits)
        digits = [jnp.sum(digit, dtype=jnp.int32) for digit in digits]
        sums.append(fixed_point.carried(digits, limbs.bits))
    return sums


def product(
    left: Float[Array, "B T"],
    right: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    means: Sequence[Float[Array, ""]],
) -> tuple[Float[Array, "B T"], Int[Array, "15"]]:
    """The centred product, 0 off the mask, and the counts of the first round of a search for it."""

    def body(blocks, scalars):
        left, right, mask = blocks
        inside = mask.astype(jnp.int32) != 0
        centered = jnp.where(inside, (left - scalars[0]) * (right - scalars[1]), 0)
        bits = jax.lax.bitcast_convert_type(jnp.where(centered == 0, 0, centered), jnp.int32)
        # In order as signed integers; entries off the mask are below every candidate.
        keys = jnp.where(bits < 0, bits ^ np.int32(2**31 - 1), bits)
        keys = jnp.where(inside, keys, np.int32(-(2**31)))
        first = _signed(_candidates(np.uint32(0), 8 * 4 - BITS))
        return [_reaching(keys, candidate) for candidate in first], [centered]

    arrays = [left, right, mask.astype(jnp.int8)]
    counts, (centered,) = _sweep(
        body, arrays, jnp.stack(means), 2**BITS - 1, written=1, name="centered_product"
    )
    return centered, _over_lanes(counts)


def kth_largest(
    keys: UInt[Array, "B T"],
    eligible: Bool[Array, "B T"],
    k: Int[Array, ""],
    num_bits: int,
    count: Callable[[Array], Array],
    *,
    add: Callable[[Array], Array],
    first: Int[Array, "15"] | None = None,
) -> UInt[Array, ""]:
    """As `selection_search.kth_largest`, four bits a round.

    Args:
      add: from the counts of this device's tokens to those of all.
      first: the counts of this device's tokens in the first round, if they are known.
    """
    del count
    # Signed, as the vector units compare; a key of 0 reaches no candidate.
    signed = _signed(jnp.where(eligible, keys, 0))

    def body(blocks, candidates):
        return [_reaching(blocks[0], candidates[i]) for i in range(2**BITS - 1)], []

    def settle(threshold, shift, counts):
        digit = jnp.sum(add(counts) >= k, dtype=jnp.uint32)
        return threshold + (digit << shift)

    def round_(i, threshold):
        shift = (BITS * (num_rounds - 1 - i)).astype(jnp.uint32)
        candidates = _signed(_candidates(threshold, shift))
        counts, _ = _sweep(body, [signed], candidates, 2**BITS - 1, name="counts")
        return settle(threshold, shift, _over_lanes(counts))

    num_rounds = -(-num_bits // BITS)
    threshold, begin = jnp.uint32(0), 0
    if first is not None:
        threshold, begin = settle(threshold, jnp.uint32(BITS * (num_rounds - 1)), first), 1
    return jax.lax.fori_loop(jnp.int32(begin), jnp.int32(num_rounds), round_, threshold)


def tiling(shape: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Steps and block of a sweep over arrays of this shape, filled up to whole tiles."""
    units, most = (ROWS, _LANES), (_BLOCK_ROWS, _BLOCK_COLUMNS)
    sizes = [-(-size // unit) * unit for size, unit in zip(shape, units, strict=True)]
    block = tuple(map(_divisor, sizes, most, units))
    return tuple(size // part for size, part in zip(sizes, block, strict=True)), block


def _candidates(threshold, shift):
    """The thresholds that differ from this one, whose low bits are 0, in one digit."""
    return threshold + (np.arange(1, 2**BITS, dtype=np.uint32) << shift)


def _signed(keys):
    """Signed integers in the order of the unsigned ones."""
    if isinstance(keys, np.ndarray):
        return (keys ^ _SIGN).view(np.int32)
    return jax.lax.bitcast_convert_type(keys ^ _SIGN, jnp.int32)


def _reaching(keys, candidate):
    return (keys >= candidate).astype(jnp.int32)


def _sweep(body, arrays, scalars, num_sums, written=0, *, name):
    """Adds up the results of `body` for a few rows over all tokens.

    Args:
      body: (blocks of the arrays, reference to the scalars) -> arrays to add up, arrays to write.
      scalars: one small array.
    Returns:
      int32 [num_sums, 8, 128], and the arrays that were written, float32.
    """
    shape = arrays[0].shape
    arrays = [_filled_up(x) for x in arrays]
    rows, columns = arrays[0].shape
    grid, block = tiling(shape)

    def kernel(scalars_ref, *refs):
        tokens, (sums_ref, *written_refs) = refs[: len(arrays)], refs[len(arrays) :]

        @pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _():
            sums_ref[...] = jnp.zeros_like(sums_ref)

        def some_rows(i, sums):
            at = pl.ds(pl.multiple_of(i * np.int32(ROWS), ROWS), ROWS)
            parts, values = body([ref[at, :] for ref in tokens], scalars_ref)
            for ref, value in zip(written_refs, values, strict=True):
                ref[at, :] = value
            return [total + _folded(part) for total, part in zip(sums, parts, strict=True)]

        nothing = [jnp.zeros((_SUBLANES, _LANES), jnp.int32)] * num_sums
        # Arrays as bounds: of Python or numpy numbers the loop would make 64-bit ones.
        end = jnp.int32(block[0] // ROWS)
        sums = jax.lax.fori_loop(jnp.int32(0), end, some_rows, nothing)
        for i, total in enumerate(sums):
            sums_ref[i] += total

    by_block = pl.BlockSpec(block, lambda i, j: (i, j))
    small = pl.BlockSpec(
        scalars.shape, lambda i, j: (_ZERO,) * scalars.ndim, memory_space=pltpu.SMEM
    )
    sums_shape = num_sums, _SUBLANES, _LANES
    sums, *values = pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[small, *[by_block] * len(arrays)],
        out_specs=[
            pl.BlockSpec(sums_shape, lambda i, j: (_ZERO, _ZERO, _ZERO)),
            *[by_block] * written,
        ],
        out_shape=[
            jax.ShapeDtypeStruct(sums_shape, jnp.int32),
            *[jax.ShapeDtypeStruct((rows, columns), jnp.float32)] * written,
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "arbitrary")),
        name=name,
    )(scalars, *arrays)
    values = [x[: shape[0], : shape[1]] for x in values]
    return sums, values


def _over_lanes(sums):
    return jnp.sum(sums, axis=(1, 2), dtype=jnp.int32)


def _filled_up(x):
    """The array with whole tiles; the padding does not count in any sweep."""
    # Signed keys: the least one. Fractions and the mask: 0.
    nothing = jnp.iinfo(x.dtype).min if x.dtype == jnp.int32 else 0
    padding = [(0, -size % tile) for size, tile in zip(x.shape, (ROWS, _LANES), strict=True)]
    return jnp.pad(x, padding, constant_values=nothing)


def _divisor(size, most, unit):
    """The largest multiple of the unit that divides the size and is at most `most`."""
    return max(part for part in range(unit, min(size, most) + 1, unit) if size % part == 0)


def _folded(x):
    """[R, C] -> [8, 128], without crossing lanes or sublanes."""
    rows, columns = (
        range(0, n, step) for n, step in zip(x.shape, (_SUBLANES, _LANES), strict=True)
    )
    parts = [x[i : i + _SUBLANES, j : j + _LANES] for i in rows for j in columns]
    return sum(parts[1:], parts[0])
