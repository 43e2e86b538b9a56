"""Means whose bits depend neither on the order of the values nor on how they are sharded.

A floating-point sum depends on its order, hence on the number of devices, and a threshold beside a
rounded mean then chooses other tokens. Integers add in any order. With 2^e above the largest |x|,

    x · 2^-e = Σ_i limb_i · 2^(-b (i + 1)) + rest,   limb_0 in [-2^b, 2^b), the others in [0, 2^b),

every limb is summed by itself as an integer, and only the few sums become one floating-point
number. b is so small that N limbs do not overflow, and there are so many limbs that they reach down
to 2^(e - 48) in float32 and 2^(e - 106) in float64, twice the bits of a significand: values above
2^-24 (2^-53) of the largest are summed exactly, and what is cut off of smaller ones moves the mean
by less than 2^(e - 48), always downwards. Values below the smallest normal number count as 0.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["Limbs", "Totals", "limb", "limbs_for", "masked_means", "plain_limb_sums"]

LEAST_BITS = 4


class Limbs(NamedTuple):
    """How a number in (-1, 1) is cut.

    Fields:
      bits: b, of a limb.
      number: how many limbs, the highest first.
      dtype: of limbs and their sums.
    """

    bits: int
    number: int
    dtype: jnp.dtype


def limbs_for(dtype: jnp.dtype, num_values: int) -> Limbs:
    """The limbs of which `num_values` can be summed.

    Raises:
      ValueError: so many values that fewer than 4 bits are left: above 2^26 in float32.
    """
    integer = jnp.dtype(jnp.int64 if dtype == jnp.float64 else jnp.int32)
    # One bit for the sign, one for the carries of `_mean`.
    bits = 8 * integer.itemsize - 2 - (max(num_values, 1) - 1).bit_length()
    if bits < LEAST_BITS:
        most = 2 ** (8 * integer.itemsize - 2 - LEAST_BITS)
        raise ValueError(f"masked_means: values must be at most {most} in number, got {num_values}")
    bits_wanted = 2 * (jnp.finfo(dtype).nmant + 1)
    return Limbs(bits, -(-bits_wanted // bits), integer)


def limb(fraction: Float[Array, "..."], index: int, limbs: Limbs) -> Int[Array, "..."]:
    """One limb of numbers in (-1, 1). Exact: every product is with a power of two."""
    base = 2.0**limbs.bits
    upto = jnp.floor(fraction * base ** (index + 1))
    if index > 0:
        upto = upto - base * jnp.floor(fraction * base**index)
    return upto.astype(limbs.dtype)


def plain_limb_sums(
    fractions: Sequence[Float[Array, "..."]], limbs: Limbs
) -> list[list[Int[Array, ""]]]:
    """Sums of each limb of each array, by XLA."""
    return [
        [jnp.sum(limb(x, i, limbs), dtype=limbs.dtype) for i in range(limbs.number)]
        for x in fractions
    ]


class Totals(NamedTuple):
    """How numbers of all tokens are brought together; the defaults leave it to the partitioner.

    Fields:
      add, largest: from the sum or maximum of this device's tokens to that of all tokens.
      limb_sums: as `plain_limb_sums`, of this device's tokens.
      parts: over how many devices the tokens are split.
    """

    add: Callable[[Array], Array] = lambda x: x
    largest: Callable[[Array], Array] = lambda x: x
    limb_sums: Callable = plain_limb_sums
    parts: int = 1


def masked_means(
    values: Sequence[Float[Array, "..."]], mask: Bool[Array, "..."], totals: Totals | None = None
) -> list[Float[Array, ""]]:
    """Means over the mask of several arrays; 0 for an empty mask. No gradient.

    Args:
      values: of one dtype, float32 or float64, in the shape of the mask.
      mask: the values that count; the others are not read.
      totals: if the arrays are a device's part, how the parts are brought together.
    Returns:
      NaN for an array that is not finite on the mask.
    """
    totals = Totals() if totals is None else totals
    dtype = values[0].dtype
    limbs = limbs_for(dtype, mask.size * totals.parts)
    count = jnp.maximum(totals.add(jnp.sum(mask, dtype=jnp.int32)), 1).astype(dtype)
    values = [jax.lax.stop_gradient(jnp.where(mask, x, 0)) for x in values]
    sizes = totals.largest(jnp.stack([jnp.max(jnp.abs(x), initial=0) for x in values]))
    exponents = [jnp.frexp(size)[1] for size in sizes]
    fractions = [_scaled(x, -e) for x, e in zip(values, exponents, strict=True)]
    sums = totals.limb_sums(fractions, limbs)
    sums = totals.add(jnp.stack([jnp.stack(of_array) for of_array in sums]))
    return [
        jnp.where(jnp.isfinite(size), _mean(own, limbs, count, exponent), jnp.nan)
        for own, exponent, size in zip(sums, exponents, sizes, strict=True)
    ]


def _mean(sums, limbs, count, exponent):
    """The number that the sums of the limbs stand for, divided by the count."""
    half = 1 << (limbs.bits - 1)
    carry, rest = jnp.zeros((), limbs.dtype), jnp.zeros((), count.dtype)
    for i in range(limbs.number - 1, 0, -1):
        total = sums[i] + carry
        # Digits of both signs: a small negative number has no long row of nearly cancelling ones.
        carry = (total + half) >> limbs.bits
        digit = total - (carry << limbs.bits)
        rest = (rest + digit.astype(count.dtype)) * 2.0**-limbs.bits
    highest = (sums[0] + carry).astype(count.dtype)
    return _scaled((highest + rest) / count, exponent - limbs.bits)


def _scaled(x, exponent):
    """x · 2^exponent, in two steps because the power itself may be no normal number."""
    first = exponent >> 1
    return x * _power_of_two(first, x.dtype) * _power_of_two(exponent - first, x.dtype)


def _power_of_two(exponent, dtype):
    """2^exponent to the last bit, which `exp2` does not promise."""
    info = jnp.finfo(dtype)
    integer = jnp.int64 if dtype == jnp.float64 else jnp.int32
    biased = exponent.astype(integer) + (info.maxexp - 1)
    return jax.lax.bitcast_convert_type(biased << info.nmant, dtype)
