"""The TPU kernel of token_stats in interpret mode, and when it runs. No TPU is needed."""

import functools
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from numpy.testing import assert_allclose, assert_array_equal
from token_stats_cases import BFLOAT16, assert_bits_stay, assert_close, in_float64

from rlvr_jax.kernels import algebra, dispatch, pallas_tpu, tpu_blocks
from rlvr_jax.kernels.plan import Plan, Policy, Tokens
from rlvr_jax.kernels.token_stats import token_stats

# Relative to the largest entry of an array (or 1): float32 sums of up to 600 terms, whose rounding
# errors add up like a random walk, and differences of logits of up to 10.
FLOAT32 = 1e-5
# Two pairs of vocabulary tiles and a rest; two blocks of tokens and a part of one.
TOKENS, WIDTH, VOCABULARY = 320, 128, 600
BLOCKS = tpu_blocks.Blocks(tokens=128, vocabulary=128, vmem_limit=1 << 24)


@pytest.fixture
def interpreted(monkeypatch):
    """Runs the kernel, in blocks small enough for small arrays, where there is no TPU."""
    monkeypatch.setattr(pl, "pallas_call", functools.partial(pl.pallas_call, interpret=True))
    monkeypatch.setattr(tpu_blocks, "device", lambda: ("tpu", "TPU v5 lite"))
    monkeypatch.setattr(tpu_blocks, "fit", lambda *_: BLOCKS)


def make_case(features=(), dtype=np.float32, seed=0):
    """Arrays (hidden, unembedding, bias), targets in every tile, and options by name."""
    random = np.random.default_rng(seed)
    arrays = {
        "hidden": random.normal(size=(TOKENS, WIDTH)),
        "unembedding": random.normal(size=(VOCABULARY, WIDTH)) * 0.2,
    }
    options = {"second_temperature": random.uniform(0.5, 2, TOKENS)}
    if "bias" in features:
        arrays["bias"] = random.normal(size=VOCABULARY)
        arrays["bias"][130:390] = -np.inf  # a whole tile, and parts of its neighbours
    if "softcap" in features:
        options["softcap"] = 3.0
    if "temperature" in features:
        options["temperature"] = random.uniform(0.5, 2, TOKENS).astype(np.float32)
    if "mask" in features:
        options["mask"] = random.uniform(size=TOKENS) < 0.5
    targets = random.permutation(np.arange(TOKENS) * 2 % VOCABULARY)
    if "bias" in features:
        targets = np.where(targets < 390, targets % 130, targets)
    arrays = {name: value.astype(dtype) for name, value in arrays.items()}
    return arrays, targets, options


@functools.cache
def compiled(implementation, needs, softcap):
    """A jitted function (arrays, targets, traced options) -> gradients, statistics."""
    weights = np.random.default_rng(1).normal(size=(len(needs), TOKENS))

    def loss(arrays, targets, traced):
        stats = token_stats(
            targets=targets,
            needs=needs,
            implementation=implementation,
            softcap=softcap,
            **arrays,
            **traced,
        )
        stats = {name: stats.get(name) for name in needs}
        total = sum(
            jnp.sum(jnp.asarray(weights[i, : x.size], x.dtype) * jnp.nan_to_num(x))
            for i, x in enumerate(stats.values())
            if x.dtype != jnp.int32
        )
        return total, stats

    return jax.jit(jax.grad(loss, has_aux=True))


def evaluate(implementation, arrays, targets, options, needs=algebra.STREAMING):
    traced = {name: value for name, value in options.items() if name != "softcap"}
    function = compiled(implementation, tuple(needs), options.get("softcap"))
    gradients, stats = function(arrays, targets, traced)
    return stats, gradients


@pytest.mark.thorough
@pytest.mark.parametrize(
    "features, dtype, tolerance",
    [
        ((), np.float32, FLOAT32),
        (("bias", "softcap", "temperature", "mask"), np.float32, FLOAT32),
        (("mask",), jnp.bfloat16, BFLOAT16),
    ],
    ids=["float32", "everything", "bfloat16"],
)
def test_values_and_gradients_agree_with_float64(interpreted, features, dtype, tolerance):
    arrays, targets, options = make_case(features, dtype)
    targets[[3, 130, 319]] = [-1, VOCABULARY, -BLOCKS.vocabulary]  # the last: before the first tile
    stats, gradients = evaluate("pallas_tpu", arrays, targets, options)
    expected, expected_gradients = evaluate(
        "reference", in_float64(arrays), targets, in_float64(options)
    )
    assert_close(stats, expected, FLOAT32)
    assert_array_equal(stats["max_id"], expected["max_id"])
    assert_close(gradients, expected_gradients, tolerance)


@pytest.mark.slow
def test_bits_of_a_token_depend_neither_on_its_place_nor_on_the_others(interpreted):
    arrays, targets, _ = make_case()
    assert_bits_stay(pallas_tpu.sums, arrays, targets, few=24)


@pytest.mark.thorough
@pytest.mark.parametrize("active, num_blocks", [(0, 0), (1, 1), (128, 1), (129, 2), (TOKENS, 3)])
def test_blocks_without_an_active_token_are_not_visited(monkeypatch, active, num_blocks):
    monkeypatch.setattr(tpu_blocks, "fit", lambda *_: BLOCKS)
    grids = []

    def spy(plan, blocks, policy, tokens, grid):
        grids.append(tuple(map(int, grid)))
        size = policy.hidden.shape[0]
        return algebra.start(plan.needs, (pallas_tpu.SUBLANES, size), plan.dtype)

    monkeypatch.setattr(pallas_tpu, "_kernel_sums", spy)
    arrays, targets, _ = make_case()
    mask = np.random.default_rng(4).permutation(TOKENS) < active
    policy = Policy(*map(jnp.asarray, arrays.values()))
    tokens = Tokens(jnp.asarray(targets, jnp.int32), jnp.asarray(mask))
    pallas_tpu.sums(Plan(needs=("logp",), dtype=jnp.dtype(jnp.float32)), policy, tokens)
    assert grids == [(num_blocks, 2), (num_blocks, 1)]  # the vocabulary's pairs, and its rest


def test_no_tokens_give_empty_statistics(interpreted):
    arrays, targets, _ = make_case()
    stats = token_stats(
        arrays["hidden"][:0],
        arrays["unembedding"],
        targets[:0],
        needs={"entropy"},
        implementation="pallas_tpu",
    )
    assert stats.entropy.shape == (0,)


WRONG = {
    "cpu": (("cpu", "cpu"), (4, 128, 2048), "bfloat16", "needs a TPU, the device is 'cpu'"),
    "dtypes": (("tpu", "TPU v4"), (4, 128, 2048), "float64", "got float64 and float64"),
    "width": (("tpu", "TPU v4"), (4, 130, 2048), "float32", "a multiple of 128, got 130"),
    "vmem": (("tpu", "TPU v4"), (4, 2**15, 2048), "float32", "D = 32768 fits into the VMEM"),
    "vocabulary": (("tpu", "TPU v4"), (4, 128, 1023), "bfloat16", "1024 entries, got 1023"),
}


@pytest.mark.parametrize("device, shape, dtype, words", WRONG.values(), ids=WRONG)
def test_a_named_kernel_that_cannot_run_says_why(monkeypatch, device, shape, dtype, words):
    monkeypatch.setattr(tpu_blocks, "device", lambda: device)
    tokens, width, vocabulary = shape
    hidden = jax.ShapeDtypeStruct((tokens, width), dtype)
    unembedding = jax.ShapeDtypeStruct((vocabulary, width), dtype)
    measure = functools.partial(
        token_stats, targets=np.zeros(tokens, int), needs={"logp"}, implementation="pallas_tpu"
    )
    message = f"^token_stats: implementation 'pallas_tpu' cannot run: .*{words}"
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(measure, hidden, unembedding)


@pytest.mark.parametrize("name", dispatch.OBSTACLES)
def test_a_named_kernel_that_cannot_run_says_so_even_if_it_has_nothing_to_do(monkeypatch, name):
    monkeypatch.setattr(tpu_blocks, "device", lambda: ("cpu", "cpu"))
    hidden, unembedding = np.ones((4, 128), np.float32), np.ones((2048, 128), np.float32)
    with pytest.raises(ValueError, match=f"implementation '{name}' cannot run: it needs a"):
        token_stats(
            hidden,
            unembedding,
            np.zeros(4, int),
            needs={"min_p_mass"},
            min_p=0.1,
            implementation=name,
        )


def test_left_to_itself_it_falls_back_to_xla_with_one_warning(monkeypatch):
    monkeypatch.setattr(tpu_blocks, "device", lambda: ("tpu", "TPU v6 lite"))
    dispatch.warn_once.cache_clear()
    hidden, unembedding = np.ones((3, 130), np.float32), np.ones((5, 130), np.float32)
    measure = functools.partial(token_stats, targets=np.arange(3), needs={"logp"})
    with pytest.warns(UserWarning, match="'xla' runs instead of 'pallas_tpu': the width D"):
        stats = measure(hidden, unembedding)
    assert_allclose(stats.logp, -np.log(5), rtol=FLOAT32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(hidden + 1, unembedding)


def test_beside_a_tpu_a_program_for_the_host_is_the_xla_form(monkeypatch):
    monkeypatch.setattr(tpu_blocks, "device", lambda: ("tpu", "TPU v6 lite"))
    hidden, unembedding = np.ones((3, 128), np.float32), np.ones((600, 128), np.float32)
    stats = jax.jit(functools.partial(token_stats, needs={"logp"}))(
        hidden, unembedding, np.arange(3)
    )
    assert_allclose(stats.logp, -np.log(600), rtol=FLOAT32)


@pytest.mark.parametrize("kind", [*tpu_blocks.TABLE, *tpu_blocks.ALIASES, "TPU v99"])
def test_blocks_fit_and_are_whole(kind):
    for width, itemsize in itertools.product((128, 896, 3584, 8192), (2, 4)):
        blocks = tpu_blocks.fit(kind, width, itemsize)
        if blocks is None:
            assert (kind, width, itemsize) in (("TPU v4", 8192, 4), ("TPU v99", 8192, 4))
            continue
        tokens, vocabulary, limit = blocks
        assert (tokens + 2 * vocabulary) * width * itemsize < limit
        assert tokens % tpu_blocks.SMALLEST == vocabulary % tpu_blocks.SMALLEST == 0


# What libtpu 0.0.51 asked for in MiB, above the chip's limit, for five statistics of 8192 tokens
# and 33068 entries in float32.
TOO_LARGE = [
    ("TPU v5 lite", 2048, (512, 512), 41.4),
    ("TPU v5 lite", 2560, (512, 512), 51.4),
    ("TPU v5 lite", 3584, (256, 512), 63.9),
    ("TPU v5 lite", 4096, (256, 256), 40.4),
    ("TPU v5", 3584, (256, 512), 64.0),
    ("TPU v6 lite", 3584, (512, 256), 43.3),
    ("TPU v4", 2048, (256, 256), 16.7),
]


@pytest.mark.parametrize("kind, width, refused, mebibytes", TOO_LARGE)
def test_what_the_compiler_refused_is_counted_and_not_taken(kind, width, refused, mebibytes):
    counted = tpu_blocks._bytes(*refused, width, itemsize=4) + tpu_blocks.RESERVE
    assert counted >= mebibytes * tpu_blocks.MEBIBYTE
    tokens, vocabulary, limit = tpu_blocks.fit(kind, width, itemsize=4)
    assert mebibytes * tpu_blocks.MEBIBYTE > limit
    assert tokens * vocabulary < refused[0] * refused[1]


# It compiled these, and larger ones would be no gain or are refused above.
COMPILED = [
    ("TPU v5 lite", 896, (512, 512)),
    ("TPU v5 lite", 1536, (512, 512)),
    ("TPU v6 lite", 2048, (1024, 256)),
    ("TPU v4", 3584, (128, 128)),
]


@pytest.mark.parametrize("kind, width, taken", COMPILED)
def test_what_the_compiler_took_is_taken(kind, width, taken):
    blocks = tpu_blocks.fit(kind, width, itemsize=4)
    assert (blocks.tokens, blocks.vocabulary) == taken


def test_the_device_is_the_one_that_a_mesh_names():
    described = jax.sharding.AbstractDevice("TPU v5", 2, "tpu")
    mesh = jax.sharding.AbstractMesh((1,), ("data",), abstract_device=described)
    with jax.sharding.use_abstract_mesh(mesh):
        assert tpu_blocks.device() == ("tpu", "TPU v5")
    own = jax.devices()[0]
    assert tpu_blocks.device() == (own.platform, own.device_kind)
