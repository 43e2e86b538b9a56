"""A run on eight host devices: the same tokens, gradients and files as on one."""

import json
import re

import jax
import numpy as np
import optax
import pytest
import training_runs
from jax.sharding import PartitionSpec

from rlvr_jax.experience import prompts
from rlvr_jax.runs import run as run_module
from rlvr_jax.runs.checkpoints import Checkpoints
from rlvr_jax.runs.step import collect
from rlvr_jax.training import layout
from rlvr_jax.training.learning import learn
from rlvr_jax.training.update import TrainState

# float32 sums in another order, against the largest entry
ROUNDING = 1e-5
BOTH = "data=2,tensor=4"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A policy whose vocabulary four devices can share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_runs, "WORDS", [*training_runs.WORDS, "?", "!"])
        return training_runs.write_policy(tmp_path_factory.mktemp("policy"), tied=False)


def one_step(model, **changes):
    """A step of plain gradient descent: rollouts, metrics, record, and the change of parameters."""
    config = training_runs.settings(model, "unused", **{"method": "grpo", **changes})
    with pytest.MonkeyPatch.context() as patch:
        # Adam would turn rounding into whole steps.
        patch.setattr(run_module, "make_optimizer", lambda config, rate: optax.sgd(1.0))
        run = training_runs.prepared(config)
    state = run.initial_state()
    before = jax.device_get(state.device.params)
    found = collect(run, state, 0)
    batch, metrics = found.batch, found.metrics
    after, learned, record = learn(run.learner, state.device, batch.rollouts, 0)
    change = jax.tree.map(np.subtract, jax.device_get(after.params), before)
    return batch.rollouts, metrics | learned, record, change, after


@pytest.fixture(scope="module")
def alone(model):
    """The step on one device, sampling included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "sampling_mesh", lambda sampler, prompts: sampler.mesh)
        return one_step(model)


@pytest.mark.thorough
def test_a_small_model_is_sampled_from_on_one_device_per_core(model, alone):
    run = training_runs.prepared(training_runs.settings(model, "unused", prompts_per_step=6))
    assert run.start.model.mesh.size == 1
    assert dict(run.start.sampler.model.mesh.shape) == {"data": 6, "fsdp": 1, "tensor": 1}
    assert_same_step(one_step(model), alone)


def assert_same_step(found, wanted):
    """The same tokens bit by bit, and everything else up to rounding."""
    for name in ("tokens", "mask", "length", "truncated", "group", "outcome", "reward"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(wanted[0], name))
    for name in ("logp", "entropy", "advantage"):
        np.testing.assert_allclose(found[2][name], wanted[2][name], atol=ROUNDING * 4)
    assert found[1].keys() == wanted[1].keys()
    assert_same_gradient(found[3], wanted[3])


def assert_same_gradient(found, wanted):
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(wanted))
    assert largest > 0
    for a, b in zip(*map(jax.tree.leaves, (found, wanted)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=ROUNDING * largest)


@pytest.mark.parametrize(
    "mesh",
    [
        BOTH,
        pytest.param("fsdp=8", marks=pytest.mark.slow),
        pytest.param("data=8", marks=pytest.mark.slow),
        pytest.param("data=2,fsdp=2,tensor=2", marks=pytest.mark.slow),
    ],
)
def test_a_step_on_a_mesh_is_that_on_one_device(model, alone, mesh):
    found = one_step(model, mesh=mesh)
    assert_same_step(found, alone)
    embedding = found[4].params["embedding"]
    assert len(embedding.sharding.device_set) == 8
    parts = {"fsdp=8": (1, 8), BOTH: (4, 1), "data=8": (1, 1)}.get(mesh, (2, 2))
    shape = tuple(size // n for size, n in zip(embedding.shape, parts, strict=True))
    assert {shard.data.shape for shard in embedding.addressable_shards} == {shape}


@pytest.fixture(scope="module")
def opened(model, tmp_path_factory):
    """The policy with a chat template by which all prompts begin with the same three tokens."""
    folder = tmp_path_factory.mktemp("opened")
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    path = folder / "tokenizer_config.json"
    template = {"chat_template": "+ = + {{ messages[0].content }}"}
    path.write_text(json.dumps(json.loads(path.read_text()) | template))
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mesh",
    [
        "",
        pytest.param(BOTH, marks=pytest.mark.slow),
        pytest.param("fsdp=8", marks=pytest.mark.slow),
        pytest.param("data=8", marks=pytest.mark.slow),
    ],
)
def test_an_opening_computed_once_changes_nothing(opened, monkeypatch, mesh):
    changes = dict(micro_batches=2, minibatches=2) if mesh in ("", BOTH) else {}
    wanted = one_step(opened, **changes)
    monkeypatch.setattr(prompts, "LEAST_OPENING", 2)
    config = training_runs.settings(opened, "unused", method="grpo")
    assert training_runs.prepared(config).start.sampler.opening == 3
    assert_same_step(one_step(opened, mesh=mesh, **changes), wanted)


@pytest.mark.slow
def test_statistics_over_the_batch_are_those_of_one_device(model):
    changes = dict(method="clip_cov", minibatches=2, hyperparameters=("fraction=0.2",))
    assert_same_step(one_step(model, mesh="data=4,tensor=2", **changes), one_step(model, **changes))


@pytest.mark.slow
def test_sampling_has_a_mesh_of_its_own(model, alone):
    assert_same_step(one_step(model, mesh="fsdp=8", sample_mesh=BOTH), alone)


@pytest.mark.slow
def test_micro_batches_and_adapters_on_a_mesh(model):
    changes = dict(micro_batches=2, lora_rank=2, remat="layers")
    assert_same_step(one_step(model, mesh=BOTH, **changes), one_step(model, **changes))


def test_optimizer_state_lies_with_its_parameters(model):
    config = training_runs.settings(model, "unused", method="grpo", mesh="fsdp=4,tensor=2")
    state = training_runs.prepared(config).initial_state()
    moments = optax.tree.get(state.device.optimizer_state, "mu")
    assert jax.tree.structure(moments) == jax.tree.structure(state.device.params)
    for moment, parameter in zip(
        *map(jax.tree.leaves, (moments, state.device.params)), strict=True
    ):
        assert moment.sharding == parameter.sharding
    assert moments["layers"]["gate"].sharding.spec == PartitionSpec(None, "fsdp", "tensor")


@pytest.mark.thorough
def test_a_state_is_read_onto_another_mesh(model, tmp_path):
    def start(**changes):
        config = training_runs.settings(model, "unused", method="grpo", **changes)
        return training_runs.prepared(config).initial_state()

    saved = start(mesh="fsdp=8")
    checkpoints = Checkpoints(tmp_path, saved)
    checkpoints.save(1, saved)
    for like in (start(), start(mesh=BOTH)):
        # Nothing of `like` but its layout counts.
        found = checkpoints.restore(1, jax.tree.map(lambda x: x + 1, like))
        jax.tree.map(np.testing.assert_array_equal, *map(jax.device_get, (found, saved)))
        for ours, wanted in zip(*map(jax.tree.leaves, (found, like)), strict=True):
            # What the host keeps lies nowhere.
            assert getattr(ours, "sharding", None) == getattr(wanted, "sharding", None)
    checkpoints.close()


@pytest.mark.slow
def test_a_run_goes_on_on_another_mesh(model, tmp_path):
    def config(**changes):
        return training_runs.settings(model, tmp_path / "run", method="grpo", **changes)

    training_runs.quietly(config(steps=1, mesh="fsdp=8"))
    training_runs.quietly(config(steps=2, mesh=BOTH, resume=True))
    training_runs.quietly(config(steps=3, resume=True))
    assert [row["step"] for row in training_runs.metrics(tmp_path / "run")] == [0, 1, 2, 3]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mesh": "data=3"}, "mesh must divide the 16 rollouts of a step by data x fsdp"),
        ({"mesh": "fsdp=8", "micro_batches": 4}, "the 4 rollouts of a micro-batch .*'fsdp=8'"),
        ({"mesh": "data=4"}, "sizes must multiply to the 8 devices, got 'data=4'"),
        ({"mesh": "tensor=8"}, "tensor must divide vocab = 14 of the model, got size 8"),
        ({"sample_mesh": "data=8"}, "sample-mesh must come with --mesh, got only 'data=8'"),
        ({"mesh": "data=8", "sample_mesh": "data=2"}, "multiply to the 8 devices, got 'data=2'"),
        ({"mesh": "rows=8"}, "--mesh must be axis=size pairs of data, fsdp, tensor"),
    ],
)
def test_a_mesh_that_does_not_fit_is_said_before_anything_is_made(
    changes, sentence, tmp_path, tmp_path_factory
):
    folder = training_runs.write_policy(tmp_path_factory.mktemp("small"))
    with pytest.raises(ValueError, match=sentence):
        training_runs.quietly(training_runs.settings(folder, tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_layout_is_told(model, tmp_path, capsys):
    config = training_runs.settings(
        model, tmp_path / "run", method="grpo", steps=1, mesh="fsdp=8", sample_mesh=BOTH
    )
    training_runs.train(config)
    said = capsys.readouterr().out
    assert "mesh fsdp=8: on each device 0.0 MiB of weights and 0.0 MiB of optimizer state" in said
    assert f"sample mesh {BOTH}: 0.0 MiB of weights more while sampling, resharded in" in said
    assert "cannot be split" not in said
    card = json.loads((tmp_path / "run/config.json").read_text())
    assert card["settings"]["sample_mesh"] == BOTH


@pytest.mark.parametrize(
    ("sample_mesh", "prompts", "told"),
    [
        ("", 4, "; the 4 prompts .* be split over data × fsdp = 8 of the mesh:"),
        ("data=8", 12, "; the 12 prompts .* data × fsdp = 8 of the sample mesh:"),
        (BOTH, 4, None),
        ("", 16, None),
    ],
)
def test_prompts_that_a_mesh_cannot_split_are_told(sample_mesh, prompts, told):
    state = TrainState(params={}, optimizer_state={}, method_state={}, updates=np.int32(0))
    said = layout.describe_layout("fsdp=8", sample_mesh, {}, state, lambda params: params, prompts)
    found = re.search(told or "cannot", said)
    assert bool(found) == bool(told), said
