"""token_stats: each implementation against float64 mathematics."""

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from everyday import everyday
from jax.test_util import check_grads
from numpy.testing import assert_allclose, assert_array_equal
from token_stats_cases import (
    BFLOAT16,
    EVERYTHING,
    FLOAT32,
    FLOAT64,
    INTEGER,
    assert_close,
    evaluate,
    in_float64,
    make_case,
    numpy_stats,
    one_hot_case,
)

from rlvr_jax.kernels.operation import DIFFERENTIABLE
from rlvr_jax.kernels.token_stats import STATISTICS, token_stats
from rlvr_jax.types import TokenStats

# Inputs are exact; float32 spacing at |z| = 1e3 is 6e-5, and a log-prob is a difference of two z.
FLOAT32_AT_1E3 = 2e-4
# Central differences in float64: truncation and rounding meet near 1e-8, the sums amplify a little.
FINITE_DIFFERENCES = 1e-6

SHAPES = ((7, 5, 11), (13, 4, 37), (16, 4, 32))  # below a tile, ragged tiles, whole tiles
SOME = ("logp", "entropy", "second_logp", "kl")
CASES = [  # everything at once exactly, then in float32, then features one by one
    (SHAPES[0], EVERYTHING, np.float64, STATISTICS),
    (SHAPES[1], EVERYTHING, np.float64, STATISTICS),
    (SHAPES[2], EVERYTHING, np.float64, SOME),
    (SHAPES[1], EVERYTHING, np.float32, STATISTICS),
    (SHAPES[1], (), np.float32, SOME),
    (SHAPES[1], ("bias",), np.float32, SOME),
    (SHAPES[1], ("softcap",), np.float32, SOME),
    (SHAPES[1], ("temperature",), np.float32, SOME),
    (SHAPES[1], ("temperatures", "mask"), np.float32, SOME),
]


def only(stats, names):
    return {name: stats[name] for name in names}


@pytest.mark.parametrize(
    "shape, features, dtype, needs", everyday(CASES, *CASES[:4], first=CASES[1:2])
)
def test_values_and_gradients_agree_with_float64(form, shape, features, dtype, needs):
    arrays, targets, options = make_case(shape, features, dtype)
    stats, gradients = evaluate(form, arrays, targets, options, needs)
    doubles = in_float64(arrays), targets, in_float64(options)
    options_in_numpy = numpy_stats(arrays, targets, **options)
    _, expected = evaluate("reference", *doubles, needs)
    tolerance = FLOAT64 if dtype == np.float64 else FLOAT32
    assert_close(stats, only(options_in_numpy, needs), tolerance)
    assert_close(gradients, expected, tolerance)
    floating = [value for name, value in stats.items() if name not in INTEGER]
    assert all(value.dtype == dtype for value in [*floating, *gradients.values()])


@pytest.mark.thorough
def test_reference_gradients_agree_with_finite_differences():
    arrays, targets, options = make_case((5, 3, 7), EVERYTHING, np.float64)

    @jax.jit
    def all_stats(arrays):
        stats = token_stats(
            targets=targets, needs=DIFFERENTIABLE, implementation="reference", **arrays, **options
        )
        # A second policy's bias is the same array, but not a function of the first policy.
        return [stats.get(name) for name in DIFFERENTIABLE]

    del arrays["bias"]
    tolerance = FINITE_DIFFERENCES
    check_grads(all_stats, (arrays,), order=1, modes=["rev"], atol=tolerance, rtol=tolerance)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "need",
    everyday(STATISTICS, "logp", "entropy", "nucleus_entropy", "second_logp", "topk_logp", "kl"),
)
def test_a_statistic_alone_is_the_one_computed_with_the_others(form, need):
    arrays, targets, options = make_case((13, 4, 37), ("bias",))
    stats, gradients = evaluate(form, arrays, targets, options, needs=[need])
    doubles = in_float64(arrays), targets, in_float64(options)
    _, expected = evaluate("reference", *doubles, needs=[need])
    assert_close(stats, {need: numpy_stats(arrays, targets, **options)[need]}, FLOAT32)
    assert_close(gradients, expected, FLOAT32)
    assert any(np.any(value != 0) for value in gradients.values()) == (need in DIFFERENTIABLE)


def test_only_needs_are_set(form):
    arrays, targets, _ = make_case((3, 2, 5))
    measure = functools.partial(token_stats, needs={"entropy"}, implementation=form)
    stats = jax.eval_shape(measure, targets=targets, **arrays)
    assert isinstance(stats, TokenStats)
    assert [name for name in STATISTICS if stats.get(name) is not None] == ["entropy"]


@pytest.mark.thorough
def test_bfloat16_inputs_lose_nothing_but_the_rounding_of_gradients(form):
    arrays, targets, options = make_case((13, 4, 37), EVERYTHING, jnp.bfloat16)
    stats, gradients = evaluate(form, arrays, targets, options)
    options = in_float64(options)
    _, expected = evaluate("reference", in_float64(arrays), targets, options)
    assert_close(stats, numpy_stats(arrays, targets, **options), FLOAT32)
    assert_close(gradients, expected, BFLOAT16)
    assert all(stats[name].dtype == np.float32 for name in set(STATISTICS) - set(INTEGER))
    assert all(value.dtype == jnp.bfloat16 for value in gradients.values())


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about XLA on a CPU")
@pytest.mark.parametrize("width, products", [(33, 8), (1030, 12)])
def test_all_products_of_bfloat16_inputs_are_bfloat16_products_on_a_cpu(width, products):
    random = np.random.default_rng(0)
    hidden, unembedding = (
        jnp.asarray(random.normal(size=(rows, width)) / width**0.25, jnp.bfloat16)
        for rows in (600, 5000)
    )

    def logp(hidden, unembedding, **how):
        targets = jnp.arange(len(hidden), dtype=jnp.int32)
        stats = token_stats(hidden, unembedding, targets, needs=["logp"], **how).logp
        return stats.sum(), stats

    gradient = jax.jit(jax.grad(logp, argnums=(0, 1), has_aux=True))
    compiled = gradient.lower(hidden, unembedding).compile()
    # Two sizes of tiles: logits twice, each in two sums where they are long, and two gradients.
    operands = re.findall(r" dot\(%(\S+), %(\S+)\)", compiled.as_text())
    assert len(operands) == products
    for name in {name for pair in operands for name in pair}:
        assert f"%{name} = bf16[" in compiled.as_text()
    gradients, found = compiled(hidden, unembedding)
    wide = hidden.astype(float), unembedding.astype(float)
    slopes, wanted = jax.grad(logp, argnums=(0, 1), has_aux=True)(*wide, implementation="reference")
    assert_close({"logp": found}, {"logp": wanted}, FLOAT32)
    assert_close(dict(enumerate(gradients)), dict(enumerate(slopes)), BFLOAT16)


def test_hidden_and_unembedding_may_differ_in_dtype(form):
    arrays, targets, options = make_case((13, 4, 37), (), jnp.bfloat16)
    arrays["unembedding"] = arrays["unembedding"].astype(np.float32)
    stats, gradients = evaluate(form, arrays, targets, options, needs=SOME)
    assert_close(stats, only(numpy_stats(arrays, targets, **options), SOME), FLOAT32)
    assert {name: x.dtype for name, x in gradients.items()} == {
        name: x.dtype for name, x in arrays.items()
    }


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["xla", "xla in tiles"], indirect=True)
def test_extreme_logits_stay_finite_and_within_bounds(form):
    random = np.random.default_rng(2)
    targets = random.integers(0, 37, 5)
    *_, options = make_case((5, 5, 37))
    needs = [name for name in STATISTICS if name not in ("max_id", "topk_ids", "mean_logit")]
    for offset, temperature in itertools.product((0, -1e3, 1e3), (1, 0.01)):
        scales = (0, 1e-3, 1, 30, 1e3)
        logits = np.stack([random.normal(size=37) * scale for scale in scales]) + offset
        arrays = one_hot_case(logits)
        options = options | {
            "temperature": np.float32(temperature),
            "other": (arrays["hidden"], arrays["unembedding"][::-1].copy()),
        }
        # Fully optimised: fusions that recompute a logit with another rounding are the trap.
        stats, gradients = evaluate(form, arrays, targets, options, needs, optimized=True)
        expected = numpy_stats(arrays, targets, **options)
        exact = ("logp", "entropy", "p_squared", "p_squared_logp", "max_logp", "second_logp")
        assert_close(only(stats, exact), only(expected, exact), FLOAT32_AT_1E3 / temperature)
        highest = np.log(np.float32(37))
        assert np.all(stats["logp"] <= 0) and np.all(stats["second_logp"] <= 0)
        assert np.all(stats["topk_logp"] <= 0) and np.all(stats["max_logp"] <= 0)
        assert np.all((stats["entropy"] >= 0) & (stats["entropy"] <= highest))
        assert np.all((stats["nucleus_entropy"] >= 0) & (stats["nucleus_entropy"] <= highest))
        assert np.all((stats["p_squared"] >= np.float32(1 / 37)) & (stats["p_squared"] <= 1))
        assert np.all((stats["min_p_mass"] > 0) & (stats["min_p_mass"] <= 1))
        assert np.all(stats["p_squared_logp"] <= 0)
        assert np.all(stats["varentropy"] >= 0)
        assert np.all(stats["kl"] >= 0) and np.all(stats["reverse_kl"] >= 0)
        assert np.all((stats["js"] >= 0) & (stats["js"] <= np.log(np.float32(2))))
        assert all(np.all(np.isfinite(x)) for x in (stats | gradients).values())


def test_uniform_logits_have_the_highest_entropy_and_no_gradient(form):
    arrays = one_hot_case(np.full((4, 37), 500.0))
    targets = np.arange(4)
    stats, gradients = evaluate(form, arrays, targets, {}, needs=["entropy", "varentropy"])
    assert_allclose(stats["entropy"], np.log(37), rtol=FLOAT32)
    assert_allclose(stats["varentropy"], 0, atol=FLOAT32)
    assert_allclose(gradients["unembedding"], 0, atol=FLOAT32_AT_1E3)


@pytest.mark.parametrize("form", ["xla", "xla in tiles"], indirect=True)
def test_varentropy_does_not_cancel_where_the_entropy_is_far_above_it(form):
    logits = np.full((1, 4096), 300.0)
    logits[0, 0] += 1.0  # Σ p l² and H² are 69, their difference is 6.6e-4
    stats, _ = evaluate(form, one_hot_case(logits), np.zeros(1, int), {}, needs=["varentropy"])
    p = np.exp(1.0) / (np.exp(1.0) + 4095)
    assert_allclose(stats["varentropy"], [p * (1 - p)], rtol=FLOAT32)


@pytest.mark.thorough
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_a_bias_of_minus_infinity_removes_entries(form, softcap):
    arrays, targets, options = make_case((13, 4, 40), ("bias",))
    targets = targets % 20
    options |= {} if softcap is None else {"softcap": softcap}
    arrays["bias"][20:] = -np.inf  # in tiles of 16: half a tile, a whole one, none of the first
    stats, gradients = evaluate(form, arrays, targets, options)
    short = arrays | {"unembedding": arrays["unembedding"][:20], "bias": arrays["bias"][:20]}
    hidden, unembedding = options["other"]
    options = options | {"other": (hidden, unembedding[:20])}
    _, expected = evaluate("reference", in_float64(short), targets, in_float64(options))
    assert_close(stats, numpy_stats(short, targets, **options), FLOAT32)
    assert_array_equal(gradients["unembedding"][20:], 0)
    assert_array_equal(gradients["bias"][20:], 0)
    gradients = {"hidden": gradients["hidden"]} | {
        name: gradients[name][:20] for name in ("unembedding", "bias")
    }
    assert_close(gradients, expected, FLOAT32)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "temperature, second_temperature, removed", [(1e-4, 1.0, False), (1.0, 1e4, True)]
)
def test_a_second_temperature_may_be_far_above_the_first(
    form, temperature, second_temperature, removed
):
    arrays, targets, _ = make_case((13, 4, 40), ("bias",))
    targets = targets % 20
    if removed:
        arrays["bias"][20:] = -np.inf
    options = {"temperature": np.float32(temperature)}
    options |= {"second_temperature": np.float32(second_temperature)}
    stats, gradients = evaluate(form, arrays, targets, options, ["second_logp"])
    logits = np.float64(arrays["hidden"]) @ np.float64(arrays["unembedding"]).T + arrays["bias"]
    logits = logits / second_temperature
    logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert_close(stats, {"second_logp": logp[np.arange(13), targets]}, FLOAT32)
    doubles = in_float64(arrays), targets, {name: float(x) for name, x in options.items()}
    _, expected = evaluate("reference", *doubles, ["second_logp"])
    assert_close(gradients, expected, FLOAT32)


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["xla", "xla in tiles"], indirect=True)
def test_it_runs_inside_scan(form):
    arrays, targets, options = make_case((26, 4, 37))
    options = {name: options[name] for name in ("top_p", "second_temperature")}
    needs = ("logp", "nucleus_entropy", "second_logp")

    def total(form, unembedding, hidden, targets):
        stats = token_stats(
            hidden, unembedding, targets, needs=needs, implementation=form, **options
        )
        return sum(jnp.sum(value) for value in jax.tree.leaves(stats))

    def scanned(arrays):
        def step(carry, batch):
            return carry + total(form, arrays["unembedding"], *batch), None

        batches = arrays["hidden"].reshape(2, 13, 4), targets.reshape(2, 13)
        return jax.lax.scan(step, jnp.float32(0), batches)[0]

    def at_once(arrays):
        return total("reference", arrays["unembedding"], arrays["hidden"], targets)

    value, gradients = jax.jit(jax.value_and_grad(scanned))(arrays)
    expected = jax.jit(jax.value_and_grad(at_once))(in_float64(arrays))
    assert_allclose(value, expected[0], rtol=FLOAT32)
    assert_close(gradients, expected[1], FLOAT32)


@pytest.mark.parametrize("form", ["xla", "xla in tiles"], indirect=True)
def test_temperatures_and_the_second_policy_have_no_gradient(form):
    arrays, targets, options = make_case((7, 4, 37))
    traced = {
        "temperature": np.full(7, 0.5, np.float32),
        "second_temperature": np.full(7, 0.7, np.float32),
        "other": options["other"],
    }

    def loss(traced):
        needs = ("logp", "second_logp", "kl", "js")
        stats = token_stats(targets=targets, needs=needs, implementation=form, **arrays, **traced)
        return sum(jnp.sum(value) for value in jax.tree.leaves(stats))

    gradients = jax.jit(jax.grad(loss))(traced)
    for value in jax.tree.leaves(gradients):
        assert_array_equal(value, np.zeros(value.shape))
