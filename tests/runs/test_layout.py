"""The weights that a sampler reads on CPU devices: those that are trained, not a copy."""

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax import policy
from rlvr_jax.runs.step import take_step
from rlvr_jax.training.layout import make_reshard


def addresses(array):
    """Where an array begins on each of its devices."""
    return [shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards]


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    """A policy whose layers begin at multiples of 64 bytes, as JAX wants arrays to."""
    folder = tmp_path_factory.mktemp("policy")
    return training_runs.write_policy(folder, width=16, num_heads=2, num_kv_heads=2, head_size=8)


@pytest.mark.thorough
def test_every_device_reads_the_trained_weights_where_they_are(aligned):
    run = training_runs.prepared(training_runs.settings(aligned, "unused"))
    state = run.initial_state()
    mesh = run.start.sampler.model.mesh
    assert run.start.model.mesh.size == 1 and mesh.size > 1
    seen = run.sampler_params(state.device)
    trained = state.device.params
    assert addresses(seen["embedding"]) == addresses(trained["embedding"]) * mesh.size
    kernels = trained["layers"]["query"]
    assert len(seen["unstacked"]) == kernels.shape[0]
    for index, layer in enumerate(seen["unstacked"]):
        place = addresses(kernels)[0] + index * kernels[0].nbytes
        assert addresses(layer["query"]) == [place] * mesh.size
        np.testing.assert_array_equal(layer["query"], kernels[index])


@pytest.mark.thorough
def test_an_update_does_not_write_over_weights_that_are_still_read(aligned):
    run = training_runs.prepared(training_runs.settings(aligned, "unused"))
    state = run.initial_state()
    seen = run.sampler_params(state.device)
    before = jax.tree.map(np.array, seen)
    after = take_step(run, state, 0).state
    assert np.any(np.asarray(after.device.params["embedding"]) != before["embedding"])
    jax.tree.map(np.testing.assert_array_equal, seen, before)


def test_in_bfloat16_every_device_has_a_copy(aligned):
    config = training_runs.settings(aligned, "unused", compute_dtype="bfloat16")
    run = training_runs.prepared(config)
    seen = make_reshard(run.start.model, run.start.sampler.model)(run.start_params())
    assert "unstacked" not in seen
    assert seen["layers"][0]["query"].dtype == "bfloat16"


@pytest.mark.thorough
@pytest.mark.parametrize(("kl", "reads"), [(0.0, [1, 2]), (0.1, [1, 1])])
def test_weights_are_read_once_unless_nobody_keeps_them(aligned, monkeypatch, kl, reads):
    load, calls = policy.load, []

    def counted(*arguments):
        calls.append(arguments)
        return load(*arguments)

    monkeypatch.setattr(policy, "load", counted)
    settings = dict(method="grpo", hyperparameters=(f"kl_coefficient={kl}",))
    run = training_runs.prepared(training_runs.settings(aligned, "unused", **settings))
    start = run.initial_state().device.params
    assert len(calls) == reads[0]
    jax.tree.map(np.testing.assert_array_equal, run.start_params(), start)
    assert len(calls) == reads[1]
    take_step(run, run.initial_state(), 0)  # the update overwrites what it got, not what is kept
    jax.tree.map(np.testing.assert_array_equal, run.start_params(), start)
