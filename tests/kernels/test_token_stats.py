"""token_stats: each implementation against float64 mathematics and its docstring's promises."""

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.kernels import algebra, xla
from rlvr_jax.kernels.token_stats import STATISTICS, token_stats
from rlvr_jax.types import TokenStats

# Relative to the largest entry of an array; sums of at most 40 terms of order 1 to 10.
FLOAT64 = 1e-13
FLOAT32 = 5e-6
# Inputs are exact; float32 spacing at |z| = 1e3 is 6e-5, and a log-prob is a difference of two z.
FLOAT32_AT_1E3 = 2e-4
# Gradients are rounded to bfloat16 once (half a spacing: 2^-9), the sums are float32.
BFLOAT16 = 2**-8
# Central differences in float64: truncation and rounding meet near 1e-8, the sums amplify a little.
FINITE_DIFFERENCES = 1e-6

# Compiling is most of the suite's time; the formulas do not depend on how well it is done.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}

FORMS = ("reference", "xla", "xla in tiles")
SHAPES = ((7, 5, 11), (13, 4, 37), (16, 4, 32))  # below a tile, ragged tiles, whole tiles
EVERYTHING = ("bias", "softcap", "temperatures", "mask")
CASES = [  # (shape, features, dtype): everything at once exactly, then one by one in float32
    *((shape, EVERYTHING, np.float64) for shape in SHAPES),
    (SHAPES[1], EVERYTHING, np.float32),
    (SHAPES[1], (), np.float32),
    (SHAPES[1], ("bias",), np.float32),
    (SHAPES[1], ("softcap",), np.float32),
    (SHAPES[1], ("temperature",), np.float32),
    (SHAPES[1], ("temperatures", "mask"), np.float32),
]


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    """Name of an implementation; the tiled form gets tiles small enough for small arrays."""
    if request.param == "xla in tiles":
        monkeypatch.setattr(xla, "TOKEN_TILE", 8)
        monkeypatch.setattr(xla, "VOCABULARY_TILE", 16)
        monkeypatch.setattr(xla, "LOGITS_AT_ONCE", 0)
    return request.param.split()[0]


def make_case(shape, features=(), dtype=np.float32, seed=0):
    """Arrays (hidden, unembedding, bias), targets and the options that `features` name."""
    tokens, width, vocabulary = shape
    random = np.random.default_rng(seed)
    arrays = {
        "hidden": random.normal(size=(tokens, width)),
        "unembedding": random.normal(size=(vocabulary, width)),
    }
    bias = random.normal(size=vocabulary)
    if "bias" in features:
        arrays["bias"] = bias
    arrays = {name: value.astype(dtype) for name, value in arrays.items()}
    options = {
        "softcap": {"softcap": 2.0},
        "temperature": {"temperature": 0.7},
        "temperatures": {"temperature": random.uniform(0.5, 2, tokens).astype(dtype)},
        "mask": {"mask": random.uniform(size=tokens) < 0.6},
    }
    chosen = {}
    for feature in features:
        chosen |= options.get(feature, {})
    return arrays, random.integers(0, vocabulary, tokens), chosen


def numpy_stats(arrays, targets, *, softcap=None, temperature=1.0, mask=None):
    """The definitions, in float64."""
    hidden, unembedding = (np.float64(arrays[name]) for name in ("hidden", "unembedding"))
    logits = hidden @ unembedding.T
    if "bias" in arrays:
        logits = logits + np.float64(arrays["bias"])
    if softcap is not None:
        logits = np.where(np.isneginf(logits), logits, softcap * np.tanh(logits / softcap))
    logits = logits / np.broadcast_to(np.float64(temperature), targets.shape)[:, None]
    largest = logits.max(axis=1)
    logsumexp = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    logp = logits - logsumexp[:, None]
    p = np.exp(logp)
    finite = np.where(p > 0, logp, 0)
    stats = {
        "logp": logp[np.arange(len(targets)), targets],
        "logsumexp": logsumexp,
        "entropy": -(p * finite).sum(axis=1),
        "p_squared": (p * p).sum(axis=1),
        "p_squared_logp": (p * p * finite).sum(axis=1),
    }
    return stats if mask is None else {name: np.where(mask, x, 0) for name, x in stats.items()}


@functools.cache
def compiled(form, tiles, needs, softcap, quick):
    """A jitted function (arrays, targets, traced options) -> gradients, statistics."""
    del tiles  # part of the key: the tile sizes are read when the function is traced
    weights = np.random.default_rng(1).normal(size=(len(STATISTICS), 64))

    def loss(arrays, targets, traced):
        stats = token_stats(
            targets=targets, needs=needs, implementation=form, softcap=softcap, **arrays, **traced
        )
        stats = {name: getattr(stats, name) for name in needs}
        terms = [
            jnp.sum(weights[i, : x.size].astype(x.dtype) * x) for i, x in enumerate(stats.values())
        ]
        return sum(terms), stats

    return jax.jit(jax.grad(loss, has_aux=True), compiler_options=QUICK if quick else None)


def evaluate(form, arrays, targets, options, needs=STATISTICS, quick=True):
    """Statistics, and gradients of their sum with random weights, in one jitted call."""
    traced = {name: value for name, value in options.items() if name != "softcap"}
    tiles = (xla.TOKEN_TILE, xla.VOCABULARY_TILE) if form == "xla" else None
    function = compiled(form, tiles, tuple(needs), options.get("softcap"), quick)
    gradients, stats = function(arrays, targets, traced)
    return stats, gradients


def assert_close(actual, expected, tolerance):
    """All arrays agree to `tolerance` times the largest expected entry (or 1)."""
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        value = np.asarray(value, np.float64)
        bound = tolerance * max(1, np.abs(value[np.isfinite(value)]).max(initial=0))
        assert_allclose(np.float64(actual[name]), value, rtol=0, atol=bound, err_msg=name)


def in_float64(arrays):
    return {name: np.asarray(value).astype(np.float64) for name, value in arrays.items()}


def one_hot_case(logits):
    """Arrays whose products h·w are exactly the rows of `logits`."""
    logits = np.asarray(logits, np.float32)
    return {"hidden": np.eye(len(logits), dtype=np.float32), "unembedding": logits.T.copy()}


@pytest.mark.parametrize("shape, features, dtype", CASES)
def test_values_and_gradients_agree_with_float64(form, shape, features, dtype):
    arrays, targets, options = make_case(shape, features, dtype)
    stats, gradients = evaluate(form, arrays, targets, options)
    _, expected = evaluate("reference", in_float64(arrays), targets, options)
    tolerance = FLOAT64 if dtype == np.float64 else FLOAT32
    assert_close(stats, numpy_stats(arrays, targets, **options), tolerance)
    assert_close(gradients, expected, tolerance)
    assert all(value.dtype == dtype for value in (stats | gradients).values())


def test_reference_gradients_agree_with_finite_differences():
    arrays, targets, options = make_case((5, 3, 7), EVERYTHING, np.float64)

    @jax.jit
    def all_stats(arrays):
        return token_stats(
            targets=targets, needs=STATISTICS, implementation="reference", **arrays, **options
        )

    tolerance = FINITE_DIFFERENCES
    check_grads(all_stats, (arrays,), order=1, modes=["rev"], atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("need", STATISTICS)
def test_a_statistic_alone_is_the_one_computed_with_the_others(form, need):
    arrays, targets, options = make_case((13, 4, 37), ("bias",))
    stats, gradients = evaluate(form, arrays, targets, options, needs=[need])
    _, expected = evaluate("reference", in_float64(arrays), targets, options, needs=[need])
    assert_close(stats, {need: numpy_stats(arrays, targets)[need]}, FLOAT32)
    assert_close(gradients, expected, FLOAT32)


def test_only_needs_are_set(form):
    arrays, targets, _ = make_case((3, 2, 5))
    measure = functools.partial(token_stats, needs={"entropy"}, implementation=form)
    stats = jax.eval_shape(measure, targets=targets, **arrays)
    assert isinstance(stats, TokenStats)
    assert [name for name in STATISTICS if getattr(stats, name) is not None] == ["entropy"]


def test_bfloat16_inputs_lose_nothing_but_the_rounding_of_gradients(form):
    arrays, targets, options = make_case((13, 4, 37), EVERYTHING, jnp.bfloat16)
    stats, gradients = evaluate(form, arrays, targets, options)
    options["temperature"] = options["temperature"].astype(np.float64)
    _, expected = evaluate("reference", in_float64(arrays), targets, options)
    assert_close(stats, numpy_stats(arrays, targets, **options), FLOAT32)
    assert_close(gradients, expected, BFLOAT16)
    assert all(value.dtype == np.float32 for value in stats.values())
    assert all(value.dtype == jnp.bfloat16 for value in gradients.values())


def test_hidden_and_unembedding_may_differ_in_dtype(form):
    arrays, targets, _ = make_case((13, 4, 37), (), jnp.bfloat16)
    arrays["unembedding"] = arrays["unembedding"].astype(np.float32)
    stats, gradients = evaluate(form, arrays, targets, {})
    assert_close(stats, numpy_stats(arrays, targets), FLOAT32)
    assert {name: x.dtype for name, x in gradients.items()} == {
        name: x.dtype for name, x in arrays.items()
    }


def test_extreme_logits_stay_finite_and_within_bounds(form):
    random = np.random.default_rng(2)
    targets = random.integers(0, 37, 5)
    for offset, temperature in itertools.product((0, -1e3, 1e3), (1, 0.01)):
        scales = (0, 1e-3, 1, 30, 1e3)
        logits = np.stack([random.normal(size=37) * scale for scale in scales]) + offset
        arrays, options = one_hot_case(logits), {"temperature": np.float32(temperature)}
        # Fully optimised: fusions that recompute a logit with another rounding are the trap.
        stats, gradients = evaluate(form, arrays, targets, options, quick=False)
        expected = numpy_stats(arrays, targets, **options)
        assert_close(stats, expected, FLOAT32_AT_1E3 / temperature)
        assert np.all(stats["logp"] <= 0)
        assert np.all((stats["entropy"] >= 0) & (stats["entropy"] <= np.log(np.float32(37))))
        assert np.all((stats["p_squared"] >= np.float32(1 / 37)) & (stats["p_squared"] <= 1))
        assert np.all(stats["p_squared_logp"] <= 0)
        assert all(np.all(np.isfinite(x)) for x in gradients.values())


def test_uniform_logits_have_the_highest_entropy_and_no_entropy_gradient(form):
    arrays = one_hot_case(np.full((4, 37), 500.0))
    targets = np.arange(4)
    stats, gradients = evaluate(form, arrays, targets, {}, needs=["entropy"])
    assert_allclose(stats["entropy"], np.log(37), rtol=FLOAT32)
    assert_allclose(gradients["unembedding"], 0, atol=FLOAT32_AT_1E3)


@pytest.mark.parametrize("softcap", [None, 3.0])
def test_a_bias_of_minus_infinity_removes_entries(form, softcap):
    arrays, targets, _ = make_case((13, 4, 40), ("bias",))
    targets = targets % 20
    options = {} if softcap is None else {"softcap": softcap}
    arrays["bias"][20:] = -np.inf  # in tiles of 16: half a tile, a whole one, none of the first
    stats, gradients = evaluate(form, arrays, targets, options)
    short = arrays | {"unembedding": arrays["unembedding"][:20], "bias": arrays["bias"][:20]}
    _, expected = evaluate("reference", in_float64(short), targets, options)
    assert_close(stats, numpy_stats(short, targets, **options), FLOAT32)
    assert_array_equal(gradients["unembedding"][20:], 0)
    assert_array_equal(gradients["bias"][20:], 0)
    gradients = {"hidden": gradients["hidden"]} | {
        name: gradients[name][:20] for name in ("unembedding", "bias")
    }
    assert_close(gradients, expected, FLOAT32)


def test_masked_tokens_are_zero_whatever_they_hold(form):
    arrays, targets, _ = make_case((13, 4, 37))
    mask = np.arange(13) % 3 == 0
    expected, expected_gradients = evaluate(form, arrays, targets, {"mask": mask})
    arrays["hidden"][~mask] = np.nan
    targets[~mask] = -100
    temperature = np.where(mask, 1, 0).astype(np.float32)
    options = {"mask": mask, "temperature": temperature}
    stats, gradients = evaluate(form, arrays, targets, options)
    for name in STATISTICS:
        assert_array_equal(stats[name], expected[name])
        assert_array_equal(stats[name][~mask], 0)
    assert_array_equal(gradients["hidden"][~mask], 0)
    assert_close(gradients, expected_gradients, FLOAT32)


def test_a_target_outside_the_vocabulary_spoils_only_its_own_logp(form):
    arrays, targets, _ = make_case((13, 4, 37))
    wrong = targets.copy()
    wrong[2], wrong[5] = -1, 37
    bad = np.isin(np.arange(13), (2, 5))
    stats, gradients = evaluate(form, arrays, wrong, {})
    expected = numpy_stats(arrays, targets)
    assert_array_equal(np.isnan(stats["logp"]), bad)
    assert_close(stats, expected | {"logp": np.where(bad, np.nan, expected["logp"])}, FLOAT32)
    assert all(np.all(np.isfinite(x)) for x in gradients.values())


def test_no_tokens_give_empty_statistics_and_zero_gradients(form):
    arrays, targets, _ = make_case((0, 4, 37))
    stats, gradients = evaluate(form, arrays, targets, {})
    assert all(x.shape == (0,) for x in stats.values())
    assert_array_equal(gradients["unembedding"], np.zeros((37, 4)))


def test_a_mask_of_nothing_gives_zeros(form):
    arrays, targets, _ = make_case((13, 4, 37))
    stats, gradients = evaluate(form, arrays, targets, {"mask": np.zeros(13, bool)})
    for value in (stats | gradients).values():
        assert_array_equal(value, np.zeros(value.shape))


@pytest.mark.parametrize("form", FORMS[1:], indirect=True)
def test_bits_of_a_token_depend_neither_on_its_place_nor_on_the_others(form):
    arrays, targets, _ = make_case((61, 16, 37))
    needs = {"logp", "entropy"}
    measure = jax.jit(functools.partial(token_stats, needs=needs, implementation=form))
    full = measure(arrays["hidden"], arrays["unembedding"], targets)
    order = np.random.default_rng(3).permutation(61)
    shuffled = measure(arrays["hidden"][order], arrays["unembedding"], targets[order])
    first = measure(arrays["hidden"][:24], arrays["unembedding"], targets[:24])
    mask = np.arange(61) % 2 == 0
    masked = measure(arrays["hidden"], arrays["unembedding"], targets, mask=mask)
    for name in needs:
        whole = getattr(full, name)
        assert_array_equal(getattr(shuffled, name), whole[order])
        assert_array_equal(getattr(first, name), whole[:24])
        assert_array_equal(getattr(masked, name)[mask], whole[mask])


@pytest.mark.parametrize("form", FORMS[1:], indirect=True)
def test_logp_has_the_same_bits_with_and_without_a_gradient(form):
    arrays, targets, _ = make_case((61, 16, 37))
    alone = jax.jit(
        functools.partial(token_stats, targets=targets, needs={"logp"}, implementation=form)
    )
    stats, _ = evaluate(form, arrays, targets, {}, needs=["logp"], quick=False)
    assert_array_equal(alone(**arrays).logp, stats["logp"])


@pytest.mark.parametrize("form", FORMS[1:], indirect=True)
def test_it_runs_inside_scan(form):
    arrays, targets, _ = make_case((26, 4, 37))

    def total(form, arrays, hidden, targets):
        stats = token_stats(
            hidden, arrays["unembedding"], targets, needs={"logp"}, implementation=form
        )
        return jnp.sum(stats.logp)

    def scanned(arrays):
        def step(carry, batch):
            return carry + total(form, arrays, *batch), None

        batches = arrays["hidden"].reshape(2, 13, 4), targets.reshape(2, 13)
        return jax.lax.scan(step, jnp.float32(0), batches)[0]

    def at_once(arrays):
        return total("reference", arrays, arrays["hidden"], targets)

    value, gradients = jax.jit(jax.value_and_grad(scanned), compiler_options=QUICK)(arrays)
    expected = jax.jit(jax.value_and_grad(at_once), compiler_options=QUICK)(in_float64(arrays))
    assert_allclose(value, expected[0], rtol=FLOAT32)
    assert_close(gradients, expected[1], FLOAT32)


@pytest.mark.parametrize("form", FORMS[1:], indirect=True)
def test_temperature_has_no_gradient(form):
    arrays, targets, _ = make_case((7, 4, 37))

    def loss(temperature):
        options = {"needs": {"logp"}, "implementation": form, "temperature": temperature}
        return jnp.sum(token_stats(targets=targets, **arrays, **options).logp)

    gradient = jax.jit(jax.grad(loss), compiler_options=QUICK)(jnp.full(7, 0.5, jnp.float32))
    assert_array_equal(gradient, np.zeros(7))


@pytest.mark.parametrize("form", ["xla in tiles"], indirect=True)
def test_tokens_without_a_cotangent_are_not_visited_backward(form):
    arrays, targets, _ = make_case((24, 4, 37))
    chosen = np.arange(24) % 3 == 1  # eight tokens: exactly one tile
    measure = functools.partial(token_stats, needs={"logp"}, implementation=form)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def unembedding_gradient(hidden, targets, cotangent):
        pullback = jax.vjp(lambda w: measure(hidden, w, targets).logp, arrays["unembedding"])[1]
        return pullback(cotangent)[0]

    hidden = arrays["hidden"]
    spoiled = np.where(chosen[:, None], hidden, np.nan)  # one visit would spoil the gradient
    gradient = unembedding_gradient(spoiled, targets, chosen.astype(np.float32))
    alone = unembedding_gradient(hidden[chosen], targets[chosen], np.ones(8, np.float32))
    assert_array_equal(gradient, alone)


def test_no_array_of_tokens_times_vocabulary_is_made():
    tokens, vocabulary = 2 * xla.TOKEN_TILE + 3, 2 * xla.VOCABULARY_TILE + 5
    arrays, targets, _ = make_case((tokens, 4, vocabulary), ("bias",))

    def loss(arrays):
        stats = token_stats(targets=targets, needs=STATISTICS, implementation="xla", **arrays)
        return sum(map(jnp.sum, jax.tree.leaves(stats)))

    lowered = jax.jit(jax.value_and_grad(loss)).lower(arrays)
    shapes = re.findall(r"\w+\[([\d,]+)\]", lowered.compile().as_text())
    sizes = [np.prod([int(n) for n in shape.split(",")]) for shape in shapes]
    assert max(sizes) == xla.TOKEN_TILE * xla.VOCABULARY_TILE


def test_merging_two_halves_of_the_vocabulary_is_seeing_all_of_it():
    logits = np.random.default_rng(4).normal(size=(6, 20)) * 10
    logits[0, :10] = -np.inf  # a half that holds nothing
    targets = logits[:, 15]

    def sums(logits, target):
        empty = algebra.start(STATISTICS, 6, jnp.float64)
        return algebra.update(empty, jnp.asarray(logits), jnp.asarray(target))

    halves = algebra.merge(sums(logits[:, :10], np.zeros(6)), sums(logits[:, 10:], targets))
    whole = algebra.finish(sums(logits, targets), 20)
    merged = algebra.finish(halves, 20)
    for name in STATISTICS:
        assert_allclose(getattr(merged, name), getattr(whole, name), rtol=FLOAT64, atol=FLOAT64)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"needs": {"entrpy"}}, "needs .* got 'entrpy'; closest: entropy"),
        ({"implementation": "xlaa"}, "implementation .* got 'xlaa'; closest: xla"),
        ({"unembedding": np.ones((5, 3))}, r"agree in D, got \(4, 2\) and \(5, 3\)"),
        ({"hidden": np.ones((2, 2, 2))}, r"got \(2, 2, 2\) and \(5, 2\)"),
        ({"unembedding": np.ones((0, 2))}, r"unembedding \[V, D\] must have entries"),
        ({"targets": np.zeros(3, int)}, r"targets must have shape \[N\] = \(4,\) .* got \(3,\)"),
        ({"targets": np.zeros(4)}, "targets must be integers, got float64"),
        ({"mask": np.ones(4)}, "mask must be bool, got float64"),
        ({"mask": np.ones((4, 1), bool)}, r"mask must have shape .* got \(4, 1\)"),
        ({"bias": np.ones(4)}, r"bias must have shape \[V\] = \(5,\) .* got \(4,\)"),
        ({"hidden": np.ones((4, 2), int)}, "hidden must be floating, got int64"),
        ({"temperature": np.ones(5)}, r"temperature must have shape .* \(4,\), got \(5,\)"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"softcap": 0.0}, "softcap must be a positive number or None, got 0.0"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_by_name(change, words):
    good = {
        "hidden": np.ones((4, 2)),
        "unembedding": np.ones((5, 2)),
        "targets": np.zeros(4, int),
        "needs": {"logp"},
    }
    with pytest.raises(ValueError, match=f"^token_stats: .*{words}"):
        token_stats(**good | change)
