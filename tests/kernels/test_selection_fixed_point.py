"""Means by sums of integers: exact, in any order, and honest about what they cannot take."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.kernels.fixed_point import (
    DOUBLE,
    NARROW,
    WIDE,
    carried,
    limb,
    limb_scales,
    limbs_for,
    masked_means,
    plain_limb_sums,
)

MEANS = jax.jit(lambda values, mask: masked_means([values], mask)[0])
SHAPE = (6, 50)
DTYPES = np.float32, np.float64
LIMBS = WIDE, NARROW, DOUBLE


def number(parts, bits):
    """What the whole part and the digits stand for."""
    return sum(Fraction(int(part), 2 ** (bits * i)) for i, part in enumerate(parts))


def exact_mean(values):
    return float(sum(map(Fraction, values.ravel().tolist())) / values.size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("offset", [0.0, 1.0, -1000.0])
def test_the_mean_is_the_exact_one_rounded(dtype, scale, offset):
    random = np.random.default_rng(0)
    values = ((random.normal(size=SHAPE) + offset) * scale).astype(dtype)
    mask = random.random(SHAPE) < 0.7
    found = MEANS(jnp.asarray(np.where(mask, values, np.nan).astype(dtype)), jnp.asarray(mask))
    # The digits (twice), their sum and the quotient are rounded by half a spacing each; what is
    # cut off is less than 2^-27 of a mean of this size in float32.
    np.testing.assert_allclose(found, exact_mean(values[mask]), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_cancel_leave_what_is_left(dtype):
    random = np.random.default_rng(1)
    large = random.normal(size=(SHAPE[0] // 2, SHAPE[1])).astype(dtype) * 1000
    values = np.concatenate([large, -large])
    values[0, 0], values[3, 0] = 1e-3, 0
    found = MEANS(jnp.asarray(values), jnp.ones(SHAPE, bool))
    limbs = limbs_for(jnp.dtype(dtype), 1)
    cut = 2.0 ** (12 - limbs.bits * limbs.number)  # the largest |x| is below 2^12
    np.testing.assert_allclose(found, exact_mean(values), rtol=2 * np.finfo(dtype).eps, atol=cut)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bits_depend_neither_on_the_order_nor_on_the_padding(dtype):
    random = np.random.default_rng(2)
    values = (random.normal(size=SHAPE) * 10.0 ** random.integers(-9, 9, SHAPE)).astype(dtype)
    mask = random.random(SHAPE) < 0.5
    order = random.permutation(values.size)
    first = MEANS(jnp.asarray(values), jnp.asarray(mask))
    again = MEANS(*(jnp.asarray(x.ravel()[order].reshape(SHAPE)) for x in (values, mask)))
    padded = MEANS(*(jnp.asarray(np.pad(x, ((0, 3), (0, 7)))) for x in (values, mask)))
    assert first.tobytes() == again.tobytes() == padded.tobytes()


@pytest.mark.parametrize("limbs", LIMBS, ids=str)
@pytest.mark.parametrize("exponent", [0, 128, -110])
def test_limbs_put_a_number_together_again_and_their_sums_fit(limbs, exponent):
    dtype = np.float64 if limbs is DOUBLE else np.float32
    assert limbs.at_once * 2**limbs.bits <= np.iinfo(limbs.dtype).max // 2 + 1
    scales = limb_scales(jnp.asarray(exponent, jnp.int32), limbs, jnp.dtype(dtype))
    for value in (0.75, -0.75, 1 - np.finfo(dtype).eps, -1 / 3, 2.0**-12, -(2.0**-12)):
        x = dtype(value) * dtype(2.0 ** (exponent // 2)) * dtype(2.0 ** (exponent - exponent // 2))
        parts = [int(limb(jnp.asarray(x), scales, i, limbs)) for i in range(limbs.number)]
        assert -(2**limbs.bits) <= parts[0] < 2**limbs.bits
        assert all(0 <= part < 2**limbs.bits for part in parts[1:])
        assert number([0, *parts], limbs.bits) == Fraction(float(dtype(value)))


@pytest.mark.parametrize("limbs", LIMBS, ids=str)
def test_carries_leave_the_number_and_small_digits(limbs):
    random = np.random.default_rng(3)
    most = limbs.at_once * 2**limbs.bits
    sums = random.integers(-most, most, (limbs.number + 1, 100), endpoint=True)
    digits = carried([jnp.asarray(x.astype(limbs.dtype)) for x in sums], limbs.bits)
    for before, after in zip(sums.T, np.transpose(digits), strict=True):
        assert number(before, limbs.bits) == number(after, limbs.bits)
    assert np.abs(digits[1:]).max() <= 2 ** (limbs.bits - 1)


def test_how_float32_is_cut_changes_no_bit():
    random = np.random.default_rng(4)
    values = [jnp.asarray(random.normal(size=SHAPE).astype(np.float32)) for _ in range(2)]
    exponents = [jnp.asarray(e, jnp.int32) for e in (3, 9)]
    few, many = (plain_limb_sums(values, exponents, most) for most in (1, WIDE.at_once + 1))
    np.testing.assert_array_equal(few, many)


def test_the_most_that_fits_is_summed():
    width = NARROW.at_once
    values = jnp.full((1, width), -np.finfo(np.float32).max, jnp.float32)
    assert MEANS(values, jnp.ones((1, width), bool)) == -np.finfo(np.float32).max


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_gives_nan_on_the_mask_only(bad):
    values = jnp.asarray([[1.0, bad, 3.0]], jnp.float32)
    assert np.isnan(MEANS(values, jnp.asarray([[True, True, False]])))
    assert MEANS(values, jnp.asarray([[True, False, True]])) == 2


def test_no_value_has_mean_zero_and_the_largest_ones_do_not_overflow():
    assert MEANS(jnp.ones((2, 3)), jnp.zeros((2, 3), bool)) == 0
    largest = np.finfo(np.float32).max
    assert MEANS(jnp.full((2, 3), largest, jnp.float32), jnp.ones((2, 3), bool)) == largest


@pytest.mark.parametrize(
    ("shapes", "dtypes", "words"),
    [
        ([(2, 2**18 + 1)], ["float32"], "1 to 262144 entries along the last axis"),
        ([(2**18 + 1, 2)], ["float64"], r"got shape \(262145, 2\) on each of 1 devices"),
        ([()], ["float32"], r"got shape \(\)"),
        ([(2**16, 2**15)], ["float32"], r"1073741824 in all, got shape \(65536, 32768\)"),
        ([(2, 3)], ["bfloat16"], "must all be float32 or all float64, got bfloat16"),
        ([(2, 3), (2, 3)], ["float32", "float64"], "got float32 and float64"),
    ],
)
def test_what_it_cannot_take_is_refused(shapes, dtypes, words):
    values = [jax.ShapeDtypeStruct(*spec) for spec in zip(shapes, dtypes, strict=True)]
    mask = jax.ShapeDtypeStruct(shapes[0], bool)
    with pytest.raises(ValueError, match=f"^masked_means: values .*{words}"):
        jax.eval_shape(masked_means, values, mask)
