"""Matrix products in bfloat16 on a CPU: their numbers, and that XLA does not widen the matrices."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.policy import products
from rlvr_jax.policy.parameters import rounded

OPTIONS = products.compiler_options("bfloat16")
pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="about XLA on a CPU")


def matrices(*shapes):
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return [
        jax.random.normal(key, shape, jnp.bfloat16) for key, shape in zip(keys, shapes, strict=True)
    ]


def widened(function, *arguments):
    """Shapes of the arrays that a compiled program converts from bfloat16 to float32."""
    text = jax.jit(function, compiler_options=OPTIONS).lower(*arguments).compile().as_text()
    narrow = dict(re.findall(r"%(\S+) = bf16\[([\d,]*)\]", text))
    narrow |= dict(re.findall(r"(\w+[\w.]*): bf16\[([\d,]*)\]", text))
    converted = re.findall(r"= f32\[[\d,]*\]\S* convert\(%(\S+?)\)", text)
    return {narrow[name] for name in converted if name in narrow}


@pytest.mark.parametrize("shape", [(7, 5, 3), (64, 33, 48), (1, 4, 4)])
def test_a_product_and_its_gradient_are_those_of_float32_rounded_once(shape):
    number, inner, width = shape
    left, right, slope = matrices((number, inner), (inner, width), (number, width))
    product, pullback = jax.vjp(products.matmul, left, right)
    wide, wide_pullback = jax.vjp(
        lambda *pair: jnp.matmul(*pair, precision="highest"),
        left.astype(jnp.float32),
        right.astype(jnp.float32),
    )
    found = (product, *pullback(slope))
    wanted = (wide, *wide_pullback(slope.astype(jnp.float32)))
    for one, exact in zip(found, wanted, strict=True):
        assert one.dtype == jnp.bfloat16
        # a rounding to eight bits; sums in another order differ by less
        assert_allclose(one.astype(jnp.float32), exact, rtol=2**-8, atol=1e-5)


def test_the_gradient_of_a_product_widens_no_matrix():
    left, right, slope = matrices((96, 64), (64, 128), (96, 128))

    def gradient(left, right, slope):
        return jax.vjp(products.matmul, left, right)[1](slope)

    def plain(left, right, slope):
        of_left = jnp.matmul(slope, right.T, preferred_element_type=jnp.float32)
        return of_left, jnp.matmul(left.T, slope, preferred_element_type=jnp.float32)

    assert not widened(gradient, left, right, slope)
    assert widened(plain, left, right, slope)


def test_a_loop_over_layers_widens_no_stack():
    """Without the option, XLA converts all layers and all stored states."""
    x, layers = matrices((32, 64), (6, 64, 64))

    def run(x, layers):
        def layer(x, matrix):
            x = jnp.tanh(products.matmul(x, matrix).astype(jnp.float32)).astype(jnp.bfloat16)
            return x, x

        return jax.lax.scan(layer, x, layers)

    assert not {shape for shape in widened(run, x, layers) if shape.startswith("6,")}
    text = jax.jit(run).lower(x, layers).compile().as_text()
    if jax.__version_info__ < (0, 11, 2):  # from then on XLA does so by itself
        assert "f32[6,64,64]" in text  # so the option matters
    plain, narrow = jax.jit(run)(x, layers), jax.jit(run, compiler_options=OPTIONS)(x, layers)
    jax.tree.map(assert_array_equal, plain, narrow)


def test_sums_and_batched_products_are_accumulated_in_float32():
    left, right = matrices((2, 3, 4, 5), (2, 3, 5, 6))
    found = products.einsum("abij,abjk->abik", left, right)
    exact = np.einsum("abij,abjk->abik", *(x.astype(jnp.float32) for x in (left, right)))
    assert found.dtype == jnp.bfloat16
    assert_allclose(found.astype(jnp.float32), exact, rtol=2**-8)


def test_norms_and_biases_stay_wide():
    ones = jnp.ones(2, jnp.float32)
    params = {"layers": {"query": ones, "query_bias": ones}, "final_norm": ones}
    found = rounded(params, "bfloat16")
    assert found["layers"]["query"].dtype == jnp.bfloat16
    assert found["layers"]["query_bias"].dtype == found["final_norm"].dtype == jnp.float32
