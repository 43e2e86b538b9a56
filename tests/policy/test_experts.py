"""A layer of experts against all experts on all tokens, and on a mesh."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from numpy.testing import assert_allclose

from rlvr_jax.parallel import make_mesh, parameter_shardings, row_sharding
from rlvr_jax.policy import Model, ModelConfig, products
from rlvr_jax.policy.experts import Experts, mixture

TOKENS, WIDTH, INNER, EXPERTS = 9, 6, 4, 5

# float64 on both sides, some tens of roundings of 1e-16 on numbers of order one
EXACT = dict(rtol=1e-11, atol=1e-12)


def arrays():
    random = np.random.default_rng(0)
    shapes = [(TOKENS, WIDTH), (WIDTH, EXPERTS), (EXPERTS, WIDTH, INNER)]
    shapes += [(EXPERTS, WIDTH, INNER), (EXPERTS, INNER, WIDTH)]
    return [jnp.asarray(random.normal(size=shape)) for shape in shapes]


def all_experts(x, router, gate, up, output, experts_per_token, normalized):
    """The same sum with every expert at every token, most of them with share 0."""
    shares = jax.nn.softmax(x @ router, axis=-1)
    least = jnp.sort(shares, axis=-1)[:, -experts_per_token][:, None]
    shares = jnp.where(shares >= least, shares, 0)
    if normalized:
        shares = shares / jnp.sum(shares, axis=-1, keepdims=True)
    inner = jnp.tanh(jnp.einsum("nd,edm->nem", x, gate)) * jnp.einsum("nd,edm->nem", x, up)
    return jnp.einsum("ne,nem,emd->nd", shares, inner, output)


@pytest.mark.thorough
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("experts_per_token", [1, 2, EXPERTS])
def test_the_sum_over_the_visited_experts_and_its_gradient(experts_per_token, normalized):
    weight = jnp.asarray(np.random.default_rng(1).normal(size=(TOKENS, WIDTH)))

    def ours(x, *matrices):
        return mixture(x, Experts(*matrices), jnp.tanh, experts_per_token, normalized)[0]

    theirs = partial(all_experts, experts_per_token=experts_per_token, normalized=normalized)

    @partial(jax.jit, static_argnums=0)
    def value_and_gradient(function, *given):
        return jax.value_and_grad(
            lambda *given: jnp.sum(weight * function(*given)), argnums=(0, 1, 2, 3, 4)
        )(*given)

    value, gradients = value_and_gradient(ours, *arrays())
    expected, wanted = value_and_gradient(theirs, *arrays())
    assert_allclose(value, expected, **EXACT)
    for gradient, other in zip(gradients, wanted, strict=True):
        assert_allclose(gradient, other, **EXACT)


@pytest.mark.thorough
def test_no_visit_is_dropped_when_all_tokens_want_the_same_expert():
    x, router, *matrices = arrays()
    router = jnp.zeros_like(router).at[:, 2].set(50.0)
    given, _ = mixture(jnp.abs(x), Experts(router, *matrices), jnp.tanh, 1, False)
    gate, up, output = (matrix[2] for matrix in matrices)
    expected = (jnp.tanh(jnp.abs(x) @ gate) * (jnp.abs(x) @ up)) @ output
    assert_allclose(given, expected, **EXACT)


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
def test_a_mesh_changes_nothing():
    config = ModelConfig(
        vocab_size=16,
        width=16,
        num_layers=1,
        num_heads=4,
        num_kv_heads=2,
        head_size=8,
        mlp_width=8,
        num_experts=4,
        experts_per_token=2,
        compute_dtype="float64",
    )
    model = Model(config)
    random = np.random.default_rng(2)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(lambda x: jnp.asarray(random.normal(0, 0.4, x.shape)), shapes)
    tokens = jnp.asarray(random.integers(0, 16, (8, 5)), jnp.int32)
    mesh = make_mesh("data=2,fsdp=2,tensor=2")
    sharded = jax.device_put(params, parameter_shardings(config, mesh))
    whole = jax.jit(model.hidden)(params, tokens)
    for own in (model, Model(config, mesh=mesh)):
        split = jax.jit(own.hidden)(sharded, jax.device_put(tokens, row_sharding(mesh)))
        assert_allclose(split, whole, **EXACT)


WIDE = dict(tokens=32, width=8, inner=8, experts=8)


def wide_arrays():
    random = np.random.default_rng(3)
    tokens, width, inner, experts = WIDE.values()
    shapes = [(tokens, width), (width, experts), (experts, width, inner)]
    shapes += [(experts, width, inner), (experts, inner, width)]
    return [jnp.asarray(random.normal(size=shape)) for shape in shapes]


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("spec", ["data=8", "data=2,fsdp=4", "data=2,fsdp=2,tensor=2", "tensor=8"])
def test_devices_share_the_visits_and_their_gradients(spec):
    mesh = make_mesh(spec)
    given = wide_arrays()
    weight = jnp.asarray(np.random.default_rng(4).normal(size=given[0].shape))

    def of(mesh):
        def loss(*given):
            y, _ = mixture(given[0], Experts(*given[1:]), jnp.tanh, 2, True, mesh)
            return jnp.sum(weight * y)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2, 3, 4)))

    value, gradients = of(mesh)(*given)
    expected, wanted = of(None)(*given)
    assert_allclose(value, expected, **EXACT)
    for gradient, other in zip(gradients, wanted, strict=True):
        assert_allclose(gradient, other, **EXACT)


@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("spec", ["data=8", "data=2,fsdp=2,tensor=2"])
def test_no_device_computes_what_another_one_does(spec):
    """An eighth of the arithmetic each, the router and its sums aside."""
    mesh = make_mesh(spec)
    rows = row_sharding(mesh)
    given = wide_arrays()

    def flops(mesh):
        ours = jax.jit(
            lambda *given: mixture(given[0], Experts(*given[1:]), jnp.tanh, 2, True, mesh)
        )
        placed = [jax.device_put(given[0], rows), *given[1:]] if mesh else given
        return ours.lower(*placed).compile().cost_analysis()["flops"]

    assert flops(mesh) < 1.5 / 8 * flops(None)


KERNELS = ["gradient_of_matrices", "gradient_of_rows"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "width", "inner"), [(256, 192, 96), (512, 512, 192), (128, 1100, 24)]
)
def test_kernels_for_the_gradients_of_experts_agree_with_those_of_jax(number, width, inner):
    """In bfloat16, with an expert that nobody visits and one that another device has."""
    random = np.random.default_rng(5)
    shapes = (number, width), (3, width, inner), (number, inner)
    rows, matrices, slope = (jnp.asarray(random.normal(size=s), jnp.bfloat16) for s in shapes)
    sizes = jnp.asarray(random.multinomial(number, [0.4, 0, 0.1, 0.5]), jnp.int32)
    with jax.enable_x64(False):
        found = (
            products.gradient_of_rows(slope, matrices, sizes, interpret=True),
            products.gradient_of_matrices(rows, slope, sizes, 3, interpret=True),
        )

    def given(rows, matrices):
        return jax.lax.ragged_dot(rows, matrices, sizes[:3])

    wide = [each.astype(jnp.float32) for each in (rows, matrices, slope)]
    wanted = jax.vjp(given, *wide[:2])[1](wide[2])
    ours = slice(int(sizes[:3].sum())), slice(None)
    for gradient, other, read in zip(found, wanted, ours, strict=True):
        assert gradient.dtype == jnp.bfloat16 and gradient.shape == other.shape
        gradient = gradient.astype(jnp.float32)[read]
        assert_allclose(gradient, other[read], rtol=2**-8, atol=1e-4)
    assert not found[1][1].any()


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "calls"), [(256, 1), (192, 0)])
def test_on_a_tpu_the_gradients_of_experts_are_the_kernels(number, calls, monkeypatch):
    """Unless no tile divides the rows; nothing else differs."""
    random = np.random.default_rng(6)
    shapes = (number, 24), (3, 24, 40), (number, 40)
    rows, matrices, weight = (jnp.asarray(random.normal(size=s), jnp.bfloat16) for s in shapes)
    sizes = jnp.asarray([number // 2, number // 4, number // 4], jnp.int32)
    called = []

    def interpreted(name):
        kernel = getattr(products, name)

        def counted(*given):
            called.append(name)
            return kernel(*given, interpret=True)

        monkeypatch.setattr(products, name, counted)

    for name in KERNELS:
        interpreted(name)

    def slopes(tpu):
        def loss(rows, matrices):
            found = products.ragged_dot(rows, matrices, sizes, tpu) * weight
            return jnp.sum(found.astype(jnp.float32))

        return jax.grad(loss, argnums=(0, 1))(rows, matrices)

    with jax.enable_x64(False):
        found, wanted = slopes(True), slopes(False)
    assert sorted(called) == sorted(KERNELS * calls)
    for gradient, other in zip(found, wanted, strict=True):
        # Either is rounded to the eight digits of bfloat16.
        assert_allclose(gradient.astype("float32"), other.astype("float32"), rtol=2**-7, atol=1e-4)


@jax.custom_vjp
def _poisoned(rows, beyond):
    return rows


_poisoned.defvjp(
    lambda rows, beyond: (rows, beyond),
    lambda beyond, slope: (jnp.where(beyond, jnp.nan, slope), None),
)


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
def test_what_a_kernel_leaves_in_the_rows_of_others_is_not_read(monkeypatch):
    """On a CPU they are zeros; nothing promises that."""

    def ragged_dot(rows, matrices, sizes, tpu):
        own = sizes[: matrices.shape[0]]
        beyond = (jnp.arange(len(rows)) >= jnp.sum(own))[:, None]
        found = jax.lax.ragged_dot(_poisoned(rows, beyond), matrices, own)
        return jnp.where(beyond, jnp.nan, found)

    given = wide_arrays()
    slopes = jax.grad(
        lambda *given: jnp.sum(mixture(given[0], Experts(*given[1:5]), *given[5:])[0] ** 2),
        argnums=(0, 1, 2, 3, 4),
    )
    expected = slopes(*given, jnp.tanh, 2, True)
    monkeypatch.setattr(products, "ragged_dot", ragged_dot)
    mesh = make_mesh("data=2,fsdp=2,tensor=2")
    found = jax.jit(lambda *given: slopes(*given, jnp.tanh, 2, True, mesh))(*given)
    for gradient, other in zip(found, expected, strict=True):
        assert_allclose(gradient, other, **EXACT)
