"""The splash kernel in place of scores in blocks: interpreted; with libtpu, compiled for TPUs."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from everyday import everyday
from jax.experimental.pallas.ops.tpu.splash_attention import make_splash_mqa
from jax.sharding import NamedSharding, PartitionSpec
from numpy.testing import assert_allclose

from rlvr_jax.kernels.dispatch import warn_once
from rlvr_jax.parallel import make_mesh, measure
from rlvr_jax.parallel.topologies import describe
from rlvr_jax.policy import Model, attention, decoder, flash, named_config

# float32: sums of at most 280 terms in another order, relative to the largest
TOLERANCE = 1e-5
PROMPT, RESPONSE = 130, 150  # two blocks of queries and three of keys, none of them full


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """The kernel on CPU, in small blocks."""
    interpreted = partial(make_splash_mqa, interpret=True)
    monkeypatch.setattr(flash, "make_splash_mqa", interpreted)
    monkeypatch.setattr(flash, "BLOCK", 64 * 4)  # 128 in float32


def operands(rows, heads, kv_heads, size):
    """Query, key and value of responses behind prompts of several lengths, and positions."""
    random = np.random.default_rng(0)
    shapes = ((RESPONSE, heads), *[(PROMPT + RESPONSE, kv_heads)] * 2)
    arrays = [random.normal(size=(rows, *shape, size)) for shape in shapes]
    start = np.linspace(1, PROMPT, rows, dtype=np.int32)[:, None]
    places = np.arange(PROMPT)[None]
    places = np.where(places < start, places, attention.NOWHERE)
    places = np.concatenate([places, start + np.arange(RESPONSE)[None]], axis=1)
    return [jnp.asarray(x, jnp.float32) for x in arrays], jnp.asarray(places, jnp.int32)


def both(total, *arguments):
    return jax.jit(jax.value_and_grad(total, argnums=tuple(range(len(arguments))), has_aux=True))(
        *arguments
    )


def assert_close(found, wanted):
    for ours, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert_allclose(ours, other, rtol=0, atol=TOLERANCE * float(jnp.max(jnp.abs(other))))


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize(
    ("heads", "kv_heads", "size", "mesh"),
    [
        (14, 2, 64, None),
        (2, 1, 128, None),
        (4, 2, 64, "data=2,fsdp=2,tensor=2"),
        (4, 1, 64, "fsdp=4,tensor=2"),  # a device has a part of the only group
        (3, 1, 64, "fsdp=4,tensor=2"),  # all devices have all heads
    ],
)
def test_the_kernel_gives_what_blocks_of_scores_give(heads, kv_heads, size, mesh):
    config = named_config("tiny", 16, num_heads=heads, num_kv_heads=kv_heads, head_size=size)
    rows = 2 if mesh is None else 4
    arrays, places = operands(rows, heads, kv_heads, size)
    mesh = mesh and make_mesh(mesh)
    weight = jnp.cos(jnp.arange(RESPONSE * heads * size, dtype=jnp.float32))
    weight = weight.reshape(1, RESPONSE, -1)

    def by_blocks(*arrays):
        y = attention.attend_in_order(
            attention.Heads(*arrays), places, jnp.bool_(False), config, None
        )
        return jnp.sum(y * weight), y

    def by_kernel(*arrays):
        y = flash.flash_attention(*arrays, places < attention.NOWHERE, size, mesh)
        return jnp.sum(y * weight), y

    (_, wanted), gradients = both(by_blocks, *arrays)
    (_, y), found = both(by_kernel, *arrays)
    assert_close((y, found), (wanted, gradients))


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("responses", everyday([1, 2], 2))
@pytest.mark.parametrize(
    "remat", ["layers", *(pytest.param(x, marks=pytest.mark.slow) for x in ("none", "attention"))]
)
def test_a_model_has_the_gradient_that_it_has_without_the_kernel(monkeypatch, remat, responses):
    # Scanned, with two prompts on each device; one response to each is one sequence with it.
    monkeypatch.setattr(decoder, "MOST_UNROLLED_LAYERS", 1)
    config = named_config("tiny", 16, remat=remat)
    mesh = make_mesh("fsdp=2", jax.devices()[:2])
    params = Model(config).init(jax.random.key(0))
    prompts, answers = (
        jax.random.randint(jax.random.key(1), shape, 0, 16, jnp.int32)
        for shape in ((4, 40), (4, responses, 30))
    )
    length = jnp.asarray([40, 1, 17, 33], jnp.int32)
    real = jnp.arange(40, dtype=jnp.int32)[None] < length[:, None]

    def total(params):
        hidden, rest = Model(config, mesh=mesh).hidden_in_groups(params, prompts, length, answers)
        # The states of padding are nobody's.
        hidden = jnp.where(real[..., None], hidden, 0)
        return jnp.sum(jnp.sin(hidden)) + jnp.sum(jnp.sin(rest)), (hidden, rest)

    (_, wanted), gradient = both(total, params)
    calls = []
    served = attention.flash_attention
    monkeypatch.setattr(attention, "flash_serves", lambda *_: True)
    monkeypatch.setattr(
        attention, "flash_attention", lambda *given: calls.append(given) or served(*given)
    )
    monkeypatch.setattr(decoder, "on_tpu", lambda mesh: True)
    (_, found), ours = both(total, params)
    assert {given[0].shape[1] for given in calls} == ({70} if responses == 1 else {40, 30})
    assert_close((found, ours), (wanted, gradient))


def test_what_no_key_is_visible_to_is_finite():
    arrays, places = operands(2, 2, 1, 64)

    def total(*arrays):
        y = flash.flash_attention(*arrays, jnp.zeros_like(places, bool), 64, None)
        return jnp.sum(y), y

    for x in jax.tree.leaves(both(total, *arrays)):
        assert bool(jnp.all(jnp.isfinite(x)))


@NEEDS_EIGHT_DEVICES
def test_the_kernel_serves_long_sequences_on_tpus():
    tpu = SimpleNamespace(devices=np.array([SimpleNamespace(platform="tpu")]))
    config = named_config("tiny", 16, compute_dtype="bfloat16")
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match="flash kernel: 64-bit numbers"):
        assert not flash.flash_serves(config, 9215, tpu)
    with jax.enable_x64(False):
        assert flash.flash_serves(config, 9215, tpu)
        assert not flash.flash_serves(config, flash.LEAST - 1, tpu)
        assert not flash.flash_serves(config, 9215, make_mesh("data=8"))
        assert not flash.flash_serves(config, 9215, None)
        window = dict(sliding_window=8, sliding_layers=(0,), local_rope_theta=10.0)
        warn_once.cache_clear()
        for change, said in ((dict(compute_dtype="float64"), "float64"), (window, "sliding wind")):
            with pytest.warns(
                UserWarning, match=f"'xla' runs instead of the flash kernel: .*{said}"
            ):
                assert not flash.flash_serves(named_config("tiny", 16, **change), 9215, tpu)


@pytest.mark.parametrize(("queries", "keys"), [(1000, 1000), (1030, 1030), (700, 1100), (256, 700)])
def test_pairs_are_those_of_blocks_that_something_is_seen_in(queries, keys):
    rows, columns = (flash._block(n, flash.BLOCK) for n in (queries, keys))
    own = np.arange(-(-queries // rows) * rows)[:, None] + keys - queries
    seen = own >= np.arange(-(-keys // columns) * columns)
    blocks = seen.reshape(-1, rows, seen.shape[1] // columns, columns).any(axis=(1, 3))
    assert flash.flash_pairs(queries, keys) == blocks.sum() * rows * columns


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("chip", ["v4-8", "v5e-4", "v5p-8", "v6e-4", "tpu7x-8"])
def test_it_is_compiled_for_tpus_and_gathers_no_keys(monkeypatch, chip, dtype):
    pytest.importorskip("libtpu")
    monkeypatch.undo()
    sizes = dict(num_heads=4, num_kv_heads=2, head_size=128)
    config = named_config("tiny", 16, compute_dtype=dtype, **sizes)
    devices = describe(chip).devices()
    mesh = make_mesh(f"data={len(devices) // 2},tensor=2", devices)
    heads = NamedSharding(mesh, PartitionSpec("data", None, "tensor"))
    query = jax.ShapeDtypeStruct((4, 2047, 4, 128), dtype, sharding=heads)
    key = jax.ShapeDtypeStruct((4, 3071, 2, 128), dtype, sharding=heads)
    whole = NamedSharding(mesh, PartitionSpec())
    places = jax.ShapeDtypeStruct((4, 3071), "int32", sharding=whole)

    def total(query, key, value, places):
        y = attention.attend_in_order(
            attention.Heads(query, key, value), places, jnp.bool_(False), config, mesh
        )
        return jnp.sum(y.astype(jnp.float32))

    with jax.enable_x64(False):
        gradient = jax.jit(jax.grad(total, argnums=(0, 1, 2)))
        _, text = measure._compiled(gradient.lower(query, key, key, places), dumped=True)
    for kernel in ("fwd", "dq", "dkv"):
        assert f"splash_mqa_{kernel}" in text
    assert "all-gather" not in text
