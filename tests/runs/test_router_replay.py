"""`--router-replay`: a run of a tiny mixture of experts, with our sampler and with an engine."""

import jax
import numpy as np
import pytest
import training_runs
from numpy.testing import assert_array_equal
from own_engine import OwnEngine, serving

from rlvr_jax.rollout.engines.engine import EngineError
from rlvr_jax.runs.step import collect

EXPERTS = dict(num_experts=8, experts_per_token=2, normalized_experts=True, qk_norm=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    shape = dict(qkv_bias=False, mlp_width=16, **EXPERTS)
    return training_runs.write_policy(tmp_path_factory.mktemp("experts"), **shape)


def test_a_step_records_routes_and_its_updates_replay_them(folder, tmp_path):
    config = training_runs.settings(folder, tmp_path, method="dapo", minibatches=2)
    batches = {}
    for replay in (False, True):
        run = training_runs.prepared(config.replace(router_replay=replay))
        assert not run.evaluator.record_routes
        batches[replay] = collect(run, run.initial_state(), 0).batch.rollouts
    there, absent = batches[True], batches[False]
    assert not {"routes", "prompt_routes"} & absent.records.keys()
    for name, array in absent.arrays.items():
        assert_array_equal(array, there.get(name))
    read = np.arange(there.tokens.shape[1])[None] < there.length[:, None] - 1
    assert (there.records["routes"][read] > 0).all()
    # Two experts that the router did not choose: the scorer of the run has other log-probs.
    state = run.initial_state().device
    moved = there.records["routes"] % 8 + (there.records["routes"] > 0).astype(np.uint8)
    scores = [
        run.scorer(state)(rows, {"logp"}, of)["logp"]
        for of in ("current", "start")
        for rows in (there, there.replace(routes=moved))
    ]
    assert np.abs(scores[0] - scores[1]).max() > 1e-4
    # The initial policy is another one: its router chooses.
    assert_array_equal(scores[2], scores[3])


@pytest.mark.thorough
def test_a_run_with_a_reference_trains_and_resumes_alike(folder, tmp_path):
    settings = training_runs.settings(folder, tmp_path / "whole", method="grpo", minibatches=2)
    settings = settings.replace(router_replay=True, compute_dtype="bfloat16")
    training_runs.quietly(settings)
    half = settings.replace(run_dir=tmp_path / "half", steps=2)
    training_runs.quietly(half)
    training_runs.quietly(half.replace(steps=3, resume=True))
    whole, again = (training_runs.metrics(tmp_path / name)[-1] for name in ("whole", "half"))
    assert whole["loss"] == again["loss"]
    assert whole["gradient_norm"] == again["gradient_norm"] > 0


def test_a_dense_model_is_refused(tmp_path):
    dense = training_runs.write_policy(tmp_path / "dense")
    config = training_runs.settings(dense, tmp_path / "run", router_replay=True)
    with pytest.raises(ValueError, match="--router-replay must be left out for a dense model"):
        training_runs.prepared(config)


def test_a_method_that_compares_distributions_with_a_teacher_is_refused(folder, tmp_path):
    config = training_runs.settings(folder, tmp_path / "run", router_replay=True)
    config = config.replace(method="self_data_curation")
    with pytest.raises(
        ValueError, match="left out for method 'self_data_curation', which compares distributions"
    ):
        training_runs.prepared(config)


@pytest.mark.thorough
def test_the_routes_of_an_engine_are_used(folder, tmp_path):
    with serving(OwnEngine(folder)) as server:
        config = training_runs.settings(folder, tmp_path / "run", method="dapo", steps=2)
        own = {"engine": "vllm", "engine_address": server.address, "router_replay": True}
        run = training_runs.prepared(config.replace(**own))
        found = collect(run, run.initial_state(), 0).batch.rollouts
        # The same weights in the same arithmetic: a pass of our own chooses the same experts.
        model, params = run.start.sampler.model, run.sampler_params(run.initial_state().device)
        size = found.prompt_tokens.shape[1] + found.tokens.shape[1]
        caches, places = model.empty_caches(1, size), np.arange(size)[None]
        routed = jax.jit(model.extend_routed)
        for row in range(4):
            start, count = found.prompt_length[row], found.length[row]
            whole = np.zeros((1, size), np.int32)  # the padding comes last: no token reads it
            whole[0, :start] = found.prompt_tokens[row, :start]
            whole[0, start : start + count] = found.tokens[row, :count]
            *_, used = routed(params, caches, whole, places)
            assert_array_equal(found.records["prompt_routes"][row, :start], used[0, :start])
            own_routes = used[0, start : start + count - 1]
            assert_array_equal(found.records["routes"][row, : count - 1], own_routes)
        server.engine.fault = "routes"
        with pytest.raises(EngineError, match="--router-replay, got none; start a vLLM"):
            collect(run, run.initial_state(), 1)
