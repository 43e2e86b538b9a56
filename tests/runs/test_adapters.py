"""Runs that train low-rank adapters, compute in bfloat16 or recompute: what moves, what is left."""

import json

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax import policy
from rlvr_jax.policy import lora
from rlvr_jax.runs.step import collect
from rlvr_jax.training.learning import learn

LORA = dict(method="grpo", lora_rank=2, lora_alpha=4.0, lora_targets=("query", "up"))
# Calls of the verifier: `CHECKS` by the self-check, one by the first evaluation, one by each step's
# rollouts and one more by the evaluation after step 2.
IN_STEP_2 = training_runs.CHECKS + 3


@pytest.fixture(scope="module")
def finished(model, tmp_path_factory):
    """The directory of a run of three steps that trained adapters, and its base."""
    run_dir = tmp_path_factory.mktemp("adapters") / "run"
    training_runs.quietly(training_runs.settings(model, run_dir, **LORA))
    return run_dir, policy.load(model)


@pytest.mark.thorough
def test_a_step_moves_the_adapters_and_nothing_else(model):
    run = training_runs.prepared(training_runs.settings(model, "unused", **LORA))
    base = jax.device_get(run.start.params)
    state = run.initial_state()
    names = {f"{name}_lora_{side}" for name in ("query", "up") for side in "ab"}
    assert (
        state.device.params.keys() == {"layers"} and state.device.params["layers"].keys() == names
    )
    # Two moments for each number that is trained, and the count of updates.
    held = sum(x.size for x in jax.tree.leaves(state.device.params))
    assert sum(x.size for x in jax.tree.leaves(state.device.optimizer_state)) == 2 * held + 1
    batch = collect(run, state, 0).batch
    after, metrics, _ = learn(run.learner, state.device, batch.rollouts, 0)
    assert metrics["gradient_norm"] > 0
    assert all(np.any(after.params["layers"][f"{name}_lora_b"]) for name in ("query", "up"))
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(run.start.params), base)


def test_the_reference_is_the_base_without_a_copy(model):
    run = training_runs.prepared(training_runs.settings(model, "unused", **LORA))
    state = run.initial_state()
    whole, _ = lora.detach(run.policy_params(state.device))
    assert run.start_params() is run.start.params
    pairs = zip(*map(jax.tree.leaves, (whole, run.start.params)), strict=True)
    assert all(ours is theirs for ours, theirs in pairs)


@pytest.mark.thorough
def test_the_policy_is_the_merged_adapter(finished):
    run_dir, (model, base) = finished
    adapted, adapter = lora.load(run_dir / "adapter", model)
    assert adapted.config.lora == policy.LoraConfig(2, 4.0, ("query", "up"))
    written = json.loads((run_dir / "adapter/adapter_config.json").read_text())
    assert written["target_modules"] == ["q_proj", "up_proj"]
    merged = lora.merge(adapted, lora.attach(base, adapter))
    exported, params = policy.load(run_dir / "policy")
    assert exported.config == model.config
    jax.tree.map(np.testing.assert_array_equal, params, merged)
    assert not np.array_equal(params["layers"]["query"], base["layers"]["query"])
    np.testing.assert_array_equal(params["layers"]["key"], base["layers"]["key"])


@pytest.mark.thorough
def test_the_distance_to_the_start_begins_at_nothing(finished):
    distance = [
        row["held_out/kl_to_start/k1"]
        for row in training_runs.metrics(finished[0])
        if "held_out/kl_to_start/k1" in row
    ]
    # A new adapter adds zeros; the two programs may round apart.
    assert abs(distance[0]) < 1e-7 < abs(distance[-1])


class Crash(BaseException):
    """Nothing in a run expects it."""


@pytest.mark.slow
def test_adapters_in_bfloat16_go_on_where_they_were(model, tmp_path):
    changes = {**LORA, "compute_dtype": "bfloat16", "remat": "layers", "checkpoint_every": 1}

    def crash():
        raise Crash

    def config(name, **others):
        return training_runs.settings(model, tmp_path / name, **changes, **others)

    training_runs.quietly(config("whole"))
    with training_runs.watched(training_runs.at_call(IN_STEP_2, crash)), pytest.raises(Crash):
        training_runs.quietly(config("killed"))
    training_runs.quietly(config("killed", resume=True))
    assert training_runs.contents(tmp_path / "killed") == training_runs.contents(tmp_path / "whole")
    with pytest.raises(ValueError, match="--lora-alpha must be 4\\.0 as in the run"):
        training_runs.quietly(config("killed", resume=True).replace(lora_alpha=8.0))


def test_what_computes_in_bfloat16_is_trained_in_float32(model):
    config = training_runs.settings(model, "unused", method="grpo", compute_dtype="bfloat16")
    run = training_runs.prepared(config)
    state = run.initial_state()
    wanted = {np.dtype("float32")}
    assert {leaf.dtype for leaf in jax.tree.leaves(state.device.params)} == wanted
    states = jax.eval_shape(run.start.model.hidden, state.device.params, np.zeros((1, 2), np.int32))
    assert states.dtype == "bfloat16"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lora_rank": -1}, "--lora-rank must be at least 0, got -1"),
        ({"lora_rank": 1, "lora_alpha": 0.0}, "alpha must be positive, got 0.0"),
        ({"lora_rank": 1, "lora_targets": ("q_proj",)}, "targets must be some of query, key, .*"),
        (
            {"compute_dtype": "float16"},
            "--compute-dtype must be one of 'float32', 'bfloat16', 'auto', got 'float16'",
        ),
        (
            {"remat": "all"},
            "--remat must be one of 'none', 'layers', 'attention', got 'all'",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(changes, sentence, model):
    with pytest.raises(ValueError, match=sentence):
        training_runs.quietly(training_runs.settings(model, "unused", **changes))
