"""Rollouts of another engine: its weights are synced, and every fault of it is named."""

import jax
import numpy as np
import pytest
from own_engine import OwnEngine

from rlvr_jax import policy, tasks
from rlvr_jax.experience.engines import EngineLink, gap_metrics
from rlvr_jax.policy import LoraConfig, lora
from rlvr_jax.rollout import Sampling
from rlvr_jax.rollout.engines.engine import Decoding, EngineError
from rlvr_jax.rollout.engines.probe import LIMITS, SLACK
from rlvr_jax.types import Rollouts, replace

BASE = tasks.load("brackets").base_model
CUT = Sampling(temperature=0.7, top_p=0.9)


@pytest.fixture(scope="module")
def base():
    model, params = policy.load(BASE)
    return model, params, policy.tokenizer(BASE)


def moved(params, seed=0, size=0.02):
    """Weights as after an update with a large rate."""
    random = np.random.default_rng(seed)

    def other(leaf):
        noise = size * random.standard_normal(leaf.shape)
        return (np.asarray(leaf) + noise).astype(leaf.dtype)

    return jax.tree.map(other, params)


def link(base, engine, folder, sampling=CUT, **options):
    model, _, tokenizer = base
    decoding = Decoding(8, sampling, (tokenizer.eos_token_id,))
    return EngineLink(engine, model, tokenizer, folder, decoding, longest=32, **options)


def test_equal_weights_have_no_gap_and_new_ones_are_loaded(base, tmp_path):
    engine = OwnEngine(BASE)
    own = link(base, engine, tmp_path)
    own.sync(base[1], 0)
    # The engine is our own model, in folders of our own.
    assert own.metrics["engine/gap_max"] == 0
    assert own.metrics["engine/reported_gap_max"] < 1e-5
    new = moved(base[1])
    own.sync(new, 4)
    assert own.metrics["engine/gap_max"] == 0
    own.sync(new, 4)
    assert engine.loads == 2


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("stale", "its weights are those before the last sync"),
        ("late", "its layers from 1 on are those before the last sync"),
        ("head", "its output matrix is not tied to the embedding: it is an earlier one"),
    ],
)
def test_weights_that_a_sync_leaves_behind_are_named(fault, named, base, tmp_path):
    own = link(base, OwnEngine(BASE, fault), tmp_path)
    own.sync(base[1], 0)
    with pytest.raises(EngineError, match=f"to 0.001 nats, got a gap of .* after sync 1: {named}"):
        own.sync(moved(base[1]), 1)


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("swapped", "its layers 0 and 1 are swapped"),
        ("transposed", "its matrix query of layer 0 is transposed"),
        ("first", r"it puts the token \S+ before every prompt"),
        ("temperature", "its log-probs are raw, not processed"),
        ("cuts", "its log-probs are processed without the cuts top-k, top-p and min-p, not"),
    ],
)
def test_another_distribution_is_named_at_the_first_sync(fault, named, base, tmp_path):
    own = link(base, OwnEngine(BASE, fault), tmp_path)
    with pytest.raises(EngineError, match=f"to 0.02 nats, got a gap of .* after sync 0: {named}"):
        own.sync(base[1], 0)


def test_another_policy_has_no_known_fault(base, tmp_path):
    own = link(base, OwnEngine(BASE, "stale"), tmp_path)
    own.engine.loads = 1
    with pytest.raises(EngineError, match="no known fault fits; the largest gap is at token"):
        own.sync(moved(base[1], 7), 0)


def test_an_engine_without_the_adapter_is_named(base, tmp_path):
    model, params, tokenizer = base
    config = replace(model.config, lora=LoraConfig(rank=4, alpha=8.0))
    adapted = replace(model, config=config)
    adapter = moved(lora.init(adapted, jax.random.key(0)))
    whole = lora.attach(params, adapter)
    good = link((adapted, params, tokenizer), OwnEngine(BASE), tmp_path / "good")
    good.sync(whole, 0)
    assert good.metrics["engine/gap_max"] < 1e-4
    engine = OwnEngine(BASE, "stale")
    engine.loads = 1
    bad = link((adapted, params, tokenizer), engine, tmp_path / "bad")
    with pytest.raises(EngineError, match="after sync 0: its weights lack the adapter"):
        bad.sync(whole, 0)


@pytest.mark.parametrize("fault", ["", "stale"])
def test_an_adapter_is_synced_without_the_weights(fault, base, tmp_path):
    model, params, tokenizer = base
    adapted = replace(model, config=replace(model.config, lora=LoraConfig(rank=4, alpha=8.0)))
    engine = OwnEngine(BASE)
    own = link((adapted, params, tokenizer), engine, tmp_path, adapters=True)
    first, second = (moved(lora.init(adapted, jax.random.key(0)), seed) for seed in (1, 2))
    own.sync(lora.attach(params, first), 0)
    assert own.metrics["engine/gap_max"] < 1e-5
    files = {path.name for path in (tmp_path / "weights_0").iterdir()}
    assert files == {"adapter_config.json", "adapter_model.safetensors"}
    engine.fault = fault
    if fault:
        with pytest.raises(EngineError, match="its weights are those before the last sync"):
            own.sync(lora.attach(params, second), 1)
    else:
        own.sync(lora.attach(params, second), 1)
        assert own.metrics["engine/gap_max"] < 1e-5


def test_a_failed_sync_is_repeated_and_probes_may_be_rare(base, tmp_path):
    engine = OwnEngine(BASE)
    own = link(base, engine, tmp_path, every=2)
    own.sync(base[1], 0)
    own.sync(moved(base[1], 1), 1)
    assert "engine/gap_max" not in own.metrics
    engine.fault = "stale"
    with pytest.raises(EngineError, match="its weights are those before the last sync"):
        own.sync(moved(base[1], 2), 2)
    engine.fault = ""
    own.sync(moved(base[1], 2), 2)
    assert own.metrics["engine/gap_max"] == 0


def test_raw_log_probs_are_those_of_plain_sampling_only(base, tmp_path):
    engine = OwnEngine(BASE)
    engine.meaning = "raw"
    link(base, engine, tmp_path, Sampling()).sync(base[1], 0)
    with pytest.raises(ValueError, match=r"temperature of 0.7 and the cuts top_p, got raw ones"):
        link(base, engine, tmp_path)


def test_the_gap_of_a_step_is_told_by_position_and_by_length():
    logp = np.array([[-1.0, -1, -1, -1], [-1, -1, 0, 0]], np.float32)
    mask = np.array([[True, True, True, True], [True, False, False, False]])
    rows = Rollouts.of_responses(np.ones((2, 4), int), mask, np.zeros(2), np.zeros(2, int))
    rows = rows.replace(behaviour_logp=logp)
    scored = logp - np.array([[0.0, 0.1, 0.2, 0.3], [0.5, 9, 9, 9]], np.float32)
    found = gap_metrics(rows, scored)
    expected = {"position/1": 0.25, "position/2": 0.1, "position/3": 0.2, "position/4": 0.3}
    expected |= {"length/1": 0.5, "length/4": 0.15}
    for name, value in expected.items():
        assert found[f"engine/gap_{name}"] == pytest.approx(value, abs=1e-6)
    assert "engine/gap_length/2" not in found
    # Estimators of KL(engine‖trainer): d = log p - log q, k3 = q / p - 1 + d.
    gaps = {"position/1": [0.0, 0.5], "position/4": [0.3], "length/4": [0.0, 0.1, 0.2, 0.3]}
    for name, own in gaps.items():
        d = np.array(own)
        kind, quarter = name.split("/")
        wanted = {"k1": d.mean(), "k3": (np.exp(-d) - 1 + d).mean()}
        wanted["gap_p99"] = np.quantile(d, 0.99)
        for number, value in wanted.items():
            assert found[f"engine/{number}_{kind}/{quarter}"] == pytest.approx(value, abs=1e-6)
    d = np.array([0.0, 0.1, 0.2, 0.3, 0.5])
    assert found["engine/k3"] == pytest.approx((np.exp(-d) - 1 + d).mean(), abs=1e-6)
    assert found["engine/gap_p99"] == pytest.approx(np.quantile(d, 0.99), abs=1e-6)
    assert found["engine/k1"] == pytest.approx(0.22, abs=1e-6)
    foreign = rows.replace(off_policy=np.array([False, True]))
    assert gap_metrics(foreign, scored)["engine/k1"] == pytest.approx(0.15, abs=1e-6)


def test_the_bound_is_that_of_the_settings(base, tmp_path):
    engine = OwnEngine(BASE)
    own = link(base, engine, tmp_path, Sampling(), bound=100.0)
    own.sync(base[1], 0)
    engine.fault = "stale"
    own.sync(moved(base[1]), 1)
    assert 0.001 < own.metrics["engine/gap_max"] < 100


def test_rounding_of_a_sharp_policy_in_bfloat16_is_no_fault_but_stale_weights_are(base, tmp_path):
    """The largest gap of rounding is above the fixed limit, so the mean finds the fault."""
    model, params, tokenizer = base
    narrow = replace(model, config=replace(model.config, compute_dtype="bfloat16"))
    sharp = {**params, "final_norm": 4 * params["final_norm"]}
    engine = OwnEngine(BASE)
    own = link((narrow, sharp, tokenizer), engine, tmp_path, Sampling())
    own.sync(sharp, 0)
    first = dict(own.metrics)
    assert first["engine/gap_max"] > LIMITS["bfloat16"]
    new = moved(sharp, size=0.002)
    engine.fault = "stale"
    fault = r"nats in the mean, got .*: its weights are those before the last sync"
    with pytest.raises(EngineError, match=fault):
        own.sync(new, 1)
    bound = SLACK * max(first["engine/gap_max"], first["engine/reported_gap_max"])
    assert own.metrics["engine/gap_max"] < bound
    engine.fault = ""
    own.sync(new, 1)
