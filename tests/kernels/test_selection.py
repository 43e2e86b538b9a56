"""Covariance, choices and quantiles against numpy, and with the same bits on 1, 4 and 8 devices."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import compilations
from devices import NEEDS_A_CPU, NEEDS_EIGHT_DEVICES
from jax.experimental import pallas as pl
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.kernels import selection, tpu_blocks

ROWS, WIDTH, TRIALS = 16, 11, 25
NUM_DEVICES = (1, 4, 8)
FRACTION = 0.8
# Products of two centred numbers of order 1, rounded five times.
FLOAT32, FLOAT64 = 1e-6, 1e-15


@pytest.fixture(params=selection.IMPLEMENTATIONS)
def form(request, monkeypatch):
    """Name of an implementation; the TPU kernel is interpreted."""
    if request.param == "pallas_tpu":
        monkeypatch.setattr(pl, "pallas_call", functools.partial(pl.pallas_call, interpret=True))
        monkeypatch.setattr(tpu_blocks, "device", lambda: ("tpu", "TPU v5 lite"))
    return request.param


def on(num_devices, name, form, *arrays, **options):
    """The operation of that name with arrays of [B, ...] split by rows; numpy in, numpy out."""
    mesh, operation = compiled(num_devices, name, form, tuple(options.items()))
    by_row, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    placed = [jax.device_put(x, by_row if np.shape(x)[:1] == (ROWS,) else whole) for x in arrays]
    return jax.tree.map(np.asarray, operation(*placed))


@functools.cache
def compiled(num_devices, name, form, options):
    mesh = Mesh(np.array(jax.devices()[:num_devices]), ("data",))
    operation = getattr(selection, name)
    return mesh, jax.jit(
        functools.partial(operation, mesh=mesh, implementation=form, **dict(options))
    )


def trials(dtype=np.float32):
    """Advantages, log-probs, mask, ids and k; every fifth with few values, every sixth empty."""
    for seed in range(TRIALS):
        random = np.random.default_rng(seed)
        logp = -random.exponential(size=(ROWS, WIDTH))
        advantage = np.broadcast_to(random.normal(size=(ROWS, 1)), logp.shape)
        if seed % 5 == 0:
            logp, advantage = np.round(logp), np.round(advantage)  # ties, and zeros of both signs
        mask = random.random(logp.shape) < random.choice([0.1, 0.5, 0.9, 1.0])
        if seed % 6 == 5:
            mask[:] = False
        rollout_id = random.permutation(ROWS).astype(np.int32) * 7 - 40
        k = np.int32(random.integers(0, mask.sum() + 3))
        yield advantage.astype(dtype), logp.astype(dtype), mask, rollout_id, k


def by_sorting(values, eligible, k, rollout_id):
    """The first k in a stable sort: by value, then id, then position."""
    order = np.argsort(rollout_id)
    places = np.argwhere(eligible[order])
    places[:, 0] = order[places[:, 0]]
    ranked = np.argsort(-values[tuple(places.T)], kind="stable")
    chosen = np.zeros_like(eligible)
    chosen[tuple(places[ranked[:k]].T)] = True
    return chosen


def same_bits(first, *others):
    return all(x.tobytes() == first.tobytes() for x in others)


@pytest.mark.thorough
@pytest.mark.parametrize("num_devices", NUM_DEVICES)
def test_top_k_is_a_stable_sort(form, num_devices):
    for _, logp, mask, rollout_id, k in trials():
        chosen = on(num_devices, "top_k", form, logp, mask, k, rollout_id)
        np.testing.assert_array_equal(chosen, by_sorting(logp, mask, k, rollout_id))


@pytest.mark.thorough
def test_covariance_has_the_same_bits_on_every_mesh_and_in_every_order(form):
    for advantage, logp, mask, *_ in trials():
        arrays = advantage, logp, mask
        found = [on(n, "covariance", form, *arrays) for n in NUM_DEVICES]
        order = np.random.default_rng(1).permutation(ROWS)
        shuffled = on(4, "covariance", form, *(x[order] for x in arrays))
        assert same_bits(found[0], *found[1:], shuffled[np.argsort(order)])
        assert same_bits(found[0], on(1, "covariance", "xla", *arrays))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, FLOAT32), (np.float64, FLOAT64)])
def test_covariance_agrees_with_its_definition(dtype, tolerance):
    for advantage, logp, mask, *_ in trials(dtype):
        found = on(4, "covariance", "xla", advantage, logp, mask)
        exact = [x.astype(np.longdouble) for x in (advantage, logp)]
        centred = [x - (x[mask].mean() if mask.any() else 0) for x in exact]
        expected = np.where(mask, centred[0] * centred[1], 0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * 10)


@pytest.mark.thorough
def test_top_covariance_is_covariance_and_top_k(form):
    for advantage, logp, mask, rollout_id, k in trials():
        centred = on(1, "covariance", "xla", advantage, logp, mask)
        expected = by_sorting(centred, mask, k, rollout_id)
        for n in NUM_DEVICES:
            arrays = advantage, logp, mask, k, rollout_id
            values, chosen = on(n, "top_covariance", form, *arrays)
            assert same_bits(centred, values)
            np.testing.assert_array_equal(chosen, expected)


@pytest.mark.thorough
def test_a_random_subset_has_k_tokens_and_is_the_same_on_every_mesh(form):
    for seed, (_, _, eligible, rollout_id, k) in enumerate(trials()):
        arrays = eligible, k, jax.random.key(seed), rollout_id
        found = [on(n, "random_subset", form, *arrays) for n in NUM_DEVICES]
        assert same_bits(found[0], *found[1:], on(1, "random_subset", "xla", *arrays))
        assert found[0].sum() == min(k, eligible.sum())
        assert not (found[0] & ~eligible).any()


@pytest.mark.thorough
def test_an_entropy_quantile_is_numpys_with_the_same_bits_on_every_mesh(form):
    for _, logp, mask, *_ in trials():
        entropy = -logp
        found = [on(n, "quantile", form, entropy, mask, fraction=FRACTION) for n in NUM_DEVICES]
        assert same_bits(found[0], *found[1:])
        expected = np.quantile(entropy[mask].astype(float), FRACTION) if mask.any() else 0
        np.testing.assert_allclose(found[0], expected, rtol=FLOAT32)


@pytest.mark.thorough
def test_clip_cov_draws_nothing_from_an_empty_interval(form):
    advantage, logp, mask, rollout_id, _ = next(trials())
    centred = on(1, "covariance", form, advantage, logp, mask)
    eligible = mask & (centred > 1e6) & (centred < 2e6)
    arrays = eligible, np.int32(3), jax.random.key(0), rollout_id
    assert not any(on(n, "random_subset", form, *arrays).any() for n in NUM_DEVICES)


@pytest.mark.thorough
def test_zeros_tie_whatever_their_sign_and_infinities_are_ordered(form):
    values = np.zeros((ROWS, WIDTH), np.float32)
    values[:, ::2] = -0.0
    values[3, 4], values[5, 6] = np.inf, -np.inf
    rollout_id = np.arange(ROWS, dtype=np.int32)[::-1].copy()
    everyone = np.ones_like(values, bool)
    for k in (1, 2, 40, values.size - 1):
        for n in NUM_DEVICES:
            chosen = on(n, "top_k", form, values, everyone, np.int32(k), rollout_id)
            np.testing.assert_array_equal(chosen, by_sorting(values, everyone, k, rollout_id))


CALLS = {
    "covariance": lambda values, mask, ids, key: (values, values, mask),
    "top_covariance": lambda values, mask, ids, key: (values, values, mask, np.int32(3), ids),
    "top_k": lambda values, mask, ids, key: (values, mask, np.int32(3), ids),
    "random_subset": lambda values, mask, ids, key: (mask, np.int32(3), key, ids),
    "quantile": lambda values, mask, ids, key: (values, mask),
}


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("name", CALLS)
def test_no_array_of_the_batch_leaves_its_device(form, name):
    _, logp, mask, rollout_id, _ = next(trials())
    options = (("fraction", FRACTION),) if name == "quantile" else ()
    mesh, operation = compiled(8, name, form, options)
    by_row = NamedSharding(mesh, PartitionSpec("data"))
    arrays = [
        jax.device_put(x, by_row) if np.shape(x)[:1] == (ROWS,) else x
        for x in CALLS[name](logp, mask, rollout_id, jax.random.key(0))
    ]
    text = operation.lower(*arrays).compile().as_text()
    sent = re.findall(
        r"= (.+?) (all-reduce|all-gather|all-to-all|collective-permute)(?:-start)?\(", text
    )
    assert sent, "eight devices cannot agree in silence"
    assert {kind for _, kind in sent} == {"all-reduce"}
    for shape, _ in sent:
        for dimensions in re.findall(r"\[([\d,]*)\]", shape):
            assert np.prod([int(n) for n in dimensions.split(",") if n]) <= 16  # counts, limbs


@pytest.mark.parametrize("name", CALLS)
def test_a_second_call_outside_of_jit_compiles_nothing(name):
    """In a notebook loops of an operation must not be compiled in every call."""
    _, logp, mask, rollout_id, _ = next(trials())
    options = {"fraction": FRACTION} if name == "quantile" else {}
    arrays = jax.tree.map(jnp.asarray, CALLS[name](logp, mask, rollout_id, jax.random.key(0)))
    getattr(selection, name)(*arrays, **options)
    with compilations() as compiled_again:
        getattr(selection, name)(*arrays, **options)
    assert not compiled_again


def test_the_gradient_of_covariance_is_that_of_its_definition():
    advantage, logp, mask, *_ = next(trials(np.float64))
    weight = np.random.default_rng(3).normal(size=mask.shape)

    def definition(advantage, logp):
        left, right = (x - jnp.mean(x, where=mask) for x in (advantage, logp))
        return jnp.sum(weight * left * right, where=mask)

    def ours(advantage, logp):
        return jnp.sum(weight * selection.covariance(advantage, logp, mask))

    found = jax.jit(jax.grad(ours, (0, 1)))(advantage, logp)
    expected = jax.jit(jax.grad(definition, (0, 1)))(advantage, logp)
    for gradient, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-13)  # sums of 176 terms of order 1


def test_what_is_off_the_mask_spoils_no_gradient():
    advantage, logp, mask, *_ = next(trials(np.float64))
    weight = np.random.default_rng(3).normal(size=mask.shape)

    @jax.jit
    @functools.partial(jax.grad, argnums=(0, 1))
    def gradients(advantage, logp):
        return jnp.sum(weight * selection.covariance(advantage, logp, mask))

    spoiled = (np.where(mask, x, np.nan) for x in (advantage, logp))
    for found, wanted in zip(gradients(*spoiled), gradients(advantage, logp), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert not found[~mask].any()


@NEEDS_A_CPU
def test_a_named_kernel_that_cannot_run_says_why(monkeypatch):
    values, mask = np.zeros((ROWS, WIDTH)), np.ones((ROWS, WIDTH), bool)
    quantile = functools.partial(selection.quantile, fraction=0.5, implementation="pallas_tpu")
    with pytest.raises(ValueError, match="it needs a TPU, the device is 'cpu'"):
        quantile(values.astype(np.float32), mask)
    monkeypatch.setattr(tpu_blocks, "device", lambda: ("tpu", "TPU v4"))
    with pytest.raises(ValueError, match="64 bits an element, got float64"):
        quantile(values, mask)
    with pytest.raises(ValueError, match=r"must be \[B, T\] and not empty, got shape \(3,\)"):
        quantile(np.zeros(3, np.float32), np.ones(3, bool))


@NEEDS_EIGHT_DEVICES
def test_rows_that_the_mesh_does_not_divide_are_refused():
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "fsdp"))
    values, mask = np.zeros((12, 3), np.float32), np.ones((12, 3), bool)
    with pytest.raises(ValueError, match="axes data and fsdp must divide the rows, got size 8 and"):
        selection.quantile(values, mask, 0.5, mesh=mesh, implementation="pallas_tpu")


def test_an_unknown_implementation_is_refused():
    with pytest.raises(ValueError, match="must be None or of xla, pallas_tpu, got 'sort'"):
        selection.quantile(np.zeros(3), np.ones(3, bool), 0.5, implementation="sort")
