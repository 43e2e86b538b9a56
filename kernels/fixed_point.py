"""Means whose bits depend neither on the order of the values nor on how they are sharded.

A floating-point sum depends on its order, and so on the number of devices. A threshold next to a
rounded mean then selects other tokens. Integers add in any order. With 2^e above the largest |x|,

    x · 2^-e = Σ_i limb_i · 2^(-b i) + rest,   i = 1 … n,   0 ≤ rest < 2^(-b n),

limb_1 in [-2^b, 2^b) and the others in [0, 2^b). Each limb is summed as an integer, first along
the last axis, then over the rest. Carries between the two keep the sums small. The digits of the
result become one floating-point number at the end.

| | b · n | exact down to | most values along the last axis, and most rows |
|---|---|---|---|
| float32 | 18 · 2 | 2^(e - 36) | 2^12 |
| float32 | 12 · 3 | 2^(e - 36) | 2^18 |
| float64 | 42 · 2 | 2^(e - 84) | 2^18 |

A value above 2^-12 (float64: 2^-31) of the largest one is summed exactly. Smaller values are cut,
which moves the mean down by less than 2^(e - 36) (float64: 2^(e - 84)). The mean is then rounded
four times. Both cuts of float32 have the same bits. Values below 2^(e - 126) may count as 0.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

MOST = 2**30


class Limbs(NamedTuple):
    """Cut of a number into limbs.

    Fields:
      bits: b.
      number: n.
      dtype: of limbs and their sums.
      at_once: most limbs in a sum, with bits for a carry and the sign.
    """

    bits: int
    number: int
    dtype: type
    at_once: int


WIDE, NARROW = Limbs(18, 2, jnp.int32, 2**12), Limbs(12, 3, jnp.int32, 2**18)
DOUBLE = Limbs(42, 2, jnp.int64, 2**18)


def limbs_for(dtype: jnp.dtype, num_values: int) -> Limbs:
    """The fewest limbs whose sums hold `num_values` values."""
    if dtype == jnp.float64:
        return DOUBLE
    return WIDE if num_values <= WIDE.at_once else NARROW


def limb_scales(exponent: Int[Array, ""], limbs: Limbs, dtype: jnp.dtype) -> Float[Array, "n 2"]:
    """2^(b i - e) for each limb as two factors: the power itself may be no normal number."""
    powers = limbs.bits * jnp.arange(1, limbs.number + 1, dtype=jnp.int32) - exponent
    return _factors(powers, dtype)


def limb(x: Float[Array, "..."], scales: Any, index: int, limbs: Limbs) -> Int[Array, "..."]:
    """Limb `index` + 1 of numbers below 2^e in size. Exact: every product is with a power of two.

    Args:
      scales: as `limb_scales`, or anything with its numbers at [index, 0] and [index, 1].
    """

    def upto(i):
        return jnp.floor(x * scales[i, 0] * scales[i, 1])

    if index == 0:
        return upto(0).astype(limbs.dtype)
    return (upto(index) - 2.0**limbs.bits * upto(index - 1)).astype(limbs.dtype)


def carried(sums: Sequence[Int[Array, "..."]], bits: int) -> list[Int[Array, "..."]]:
    """The same number with digits in [-2^(b - 1), 2^(b - 1)), except for the first, the whole part.

    Digits of both signs: a small negative number has no long row of nearly cancelling ones.

    Args:
      sums: the whole part, and one for each limb.
    """
    half, carry, digits = 1 << (bits - 1), 0, []
    for total in reversed(sums[1:]):
        total = total + carry
        carry = (total + half) >> bits
        digits.append(total - (carry << bits))
    return [sums[0] + carry, *reversed(digits)]


def plain_limb_sums(
    values: Sequence[Float[Array, "..."]], exponents: Sequence[Int[Array, ""]], most: int
) -> list[list[Int[Array, ""]]]:
    """Whole part and digits of the sum of each array, x · 2^-e, by XLA.

    Args:
      exponents: e of each array.
      most: number of values along the last axis, or of rows on all devices.
    Returns:
      Digits of `NARROW` limbs for float32, of `DOUBLE` ones for float64.
    """
    limbs = limbs_for(values[0].dtype, most)
    return [_limb_sums(*array, limbs) for array in zip(values, exponents, strict=True)]


def _limb_sums(x, exponent, limbs):
    scales = limb_scales(exponent, limbs, x.dtype)
    rows = [
        jnp.sum(limb(x, scales, i, limbs), axis=-1, dtype=limbs.dtype) for i in range(limbs.number)
    ]
    digits = carried([jnp.zeros_like(rows[0]), *rows], limbs.bits)
    sums = carried([jnp.sum(digit, dtype=limbs.dtype) for digit in digits], limbs.bits)
    if limbs is not WIDE:
        return sums
    # a · 2^-18 + b · 2^-36 = 64 a · 2^-24 + b · 2^-36
    whole, first, second = sums
    return carried([whole, jnp.zeros_like(whole), first << 6, second], NARROW.bits)


class Totals(NamedTuple):
    """Sums over the tokens of all devices; the defaults leave them to the partitioner.

    Fields:
      add, largest: from the sum or maximum of this device's tokens to that of all tokens.
      limb_sums: as `plain_limb_sums`, of this device's tokens.
      parts: number of devices that split the tokens.
    """

    add: Callable[[Array], Array] = lambda x: x
    largest: Callable[[Array], Array] = lambda x: x
    limb_sums: Callable[[Sequence[Array], Sequence[Array], int], list[list[Int[Array, ""]]]] = (
        plain_limb_sums
    )
    parts: int = 1


def masked_means(
    values: Sequence[Float[Array, "..."]], mask: Bool[Array, "..."], totals: Totals | None = None
) -> list[Float[Array, ""]]:
    """Means over the mask of several arrays; 0 for an empty mask. No gradient.

    Args:
      values: of one dtype, float32 or float64, in the shape of the mask.
      mask: the values that count; the others are not read.
      totals: sums over devices, if the arrays are one device's part.
    Returns:
      NaN for an array that is not finite on the mask.
    Raises:
      ValueError: another dtype, no axis, or more values than the table above or 2^30.
    """
    totals = Totals() if totals is None else totals
    most = _check(values, mask.shape, totals.parts)
    dtype = values[0].dtype
    count = jnp.maximum(totals.add(jnp.sum(mask, dtype=jnp.int32)), 1).astype(dtype)
    values = [jax.lax.stop_gradient(jnp.where(mask, x, 0)) for x in values]
    sizes = totals.largest(jnp.stack([jnp.max(jnp.abs(x), initial=0) for x in values]))
    exponents = [jnp.frexp(size)[1] for size in sizes]
    sums = totals.limb_sums(values, exponents, most)
    sums = totals.add(jnp.stack([jnp.stack(own) for own in sums]))
    return [
        jnp.where(jnp.isfinite(size), _mean(own, count, exponent), jnp.nan)
        for own, exponent, size in zip(sums, exponents, sizes, strict=True)
    ]


def _check(values, shape, parts):
    """The most values along the last axis, or rows."""
    found = {str(x.dtype) for x in values}
    if len(found) > 1 or not found <= {"float32", "float64"}:
        seen = " and ".join(sorted(found))
        raise ValueError(f"masked_means: values must all be float32 or all float64, got {seen}")
    *rows, width = shape or (NARROW.at_once + 1,)
    most = max(width, math.prod(rows) * parts)
    if most > NARROW.at_once or most * min(width, math.prod(rows) * parts) > MOST:
        raise ValueError(
            f"masked_means: values must have 1 to {NARROW.at_once} entries along the last axis, at"
            f" most as many rows, and {MOST} in all, got shape {shape} on each of {parts} devices"
        )
    return most


def _mean(sums, count, exponent):
    """The number that the digits represent, divided by the count."""
    bits = DOUBLE.bits if count.dtype == jnp.float64 else NARROW.bits
    whole, *digits = (digit.astype(count.dtype) for digit in carried(list(sums), bits))
    rest = jnp.zeros((), count.dtype)
    for digit in reversed(digits):
        rest = (rest + digit) * 2.0**-bits
    factors = _factors(exponent, count.dtype)
    return (whole + rest) / count * factors[0] * factors[1]


def _factors(exponent, dtype):
    """Two powers of two with the product 2^exponent, to the last bit, as `exp2` is not."""
    half = exponent >> 1
    info = jnp.finfo(dtype)
    integer = jnp.int64 if dtype == jnp.float64 else jnp.int32
    biased = jnp.stack([half, exponent - half], axis=-1).astype(integer) + (info.maxexp - 1)
    return jax.lax.bitcast_convert_type(biased << info.nmant, dtype)
