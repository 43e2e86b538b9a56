"""A policy that does not fit is refused before anything of it is read."""

import re
from types import SimpleNamespace

import jax
import pytest
import training_runs

from rlvr_jax import methods, tasks
from rlvr_jax.parallel import make_mesh
from rlvr_jax.policy import LoraConfig, weights
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.run import make_optimizer
from rlvr_jax.training import memory
from rlvr_jax.training.layout import trained_shapes
from rlvr_jax.training.memory import describe_memory, free_bytes, least_bytes
from rlvr_jax.types import replace

GIB = 2**30


@pytest.fixture
def loaded(model, tmp_path):
    config = training_runs.settings(model, tmp_path)
    return config, load_policy(config, tasks.load(config.data.task), config.policy.model).model


def size(tree):
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def test_training_wants_weights_gradient_and_two_moments(loaded):
    config, model = loaded
    weights = size(parameter_shapes(model.config))
    assert least_bytes(model) == {"weights": weights}
    least = least_bytes(model, make_optimizer(config.optimizer, 1e-3), frozen=True)
    moments = least.pop("optimizer") - 2 * weights
    assert 0 <= moments < 16  # counts of updates
    assert least == {"weights": weights, "gradient": weights, "frozen weights": weights}


def test_adapters_want_little_beside_their_base(loaded):
    config, model = loaded
    adapted = replace(model, config=replace(model.config, lora=LoraConfig(1, 1.0, ("query",))))
    least = least_bytes(adapted, make_optimizer(config.optimizer, 1e-3), frozen=True)
    assert least["weights"] == least["gradient"] == size(trained_shapes(adapted))
    assert least["frozen weights"] == size(parameter_shapes(model.config))


def test_a_critic_wants_weights_and_moments_of_its_own(loaded):
    config, model = loaded
    optimizer = make_optimizer(config.optimizer, 1e-3)
    critic = methods.recipe("ppo").critic
    alone, both = (least_bytes(model, optimizer, critic=c) for c in (None, (critic, optimizer)))
    head = 4 * (model.config.width + 1)
    assert both.pop("critic") == alone["weights"] + alone["optimizer"] + 3 * head
    assert both == alone


def test_a_head_on_the_policys_hidden_states_wants_next_to_nothing(loaded):
    config, model = loaded
    optimizer = make_optimizer(config.optimizer, 1e-3)
    critic = methods.recipe("ppo", trunk="policy").critic
    least = least_bytes(model, optimizer, critic=(critic, optimizer))
    assert least["critic"] <= 3 * 4 * (model.config.width + 1) + 16  # and counts of updates
    assert least["gradient"] == least["weights"]


def test_the_cache_has_each_prompt_once_and_each_answer(model, tmp_path):
    config = training_runs.settings(model, tmp_path, prompts_per_step=4, samples_per_prompt=3)
    run = training_runs.prepared(config)
    shape, width = run.start.model.config, run.start.train_table.tokens.shape[1]
    rows = 4 * (width + 3 * training_runs.BUDGET)
    each = 2 * shape.num_layers * shape.num_kv_heads * shape.head_size * 4
    devices = run.start.sampler.model.mesh.size
    assert run.memory["sampler's cache"] == rows * each // devices
    assert re.match(
        r"memory of a device: weights \S+ KiB, gradient .*sampler's cache \S+ KiB; activations",
        describe_memory(run.memory),
    )


def test_a_mesh_divides_what_each_device_holds(loaded):
    _, model = loaded
    split = replace(model, mesh=make_mesh("fsdp=2", jax.devices()[:2]))
    whole = size(parameter_shapes(model.config))
    assert whole / 2 <= least_bytes(split)["weights"] < 0.6 * whole


def test_what_does_not_fit_is_refused_with_both_numbers_and_nothing_is_read(
    model, tmp_path, monkeypatch
):
    def read(*_, **__):
        raise AssertionError("weights were read")

    monkeypatch.setattr(weights, "place", read)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1024)
    config = training_runs.settings(model, tmp_path)
    wanted = r"needs at least .* [KMG]iB of memory \(weights .*, gradient .*, optimizer .*\), found"
    with pytest.raises(ValueError, match=wanted + r" 1 KiB free on this host"):
        training_runs.prepared(config)


def test_a_cpu_has_what_the_system_and_its_group_leave(tmp_path, monkeypatch):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  9 kB\nMemAvailable:  4194304 kB\nHugePages_Total:  0\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    cpu = jax.devices("cpu")[0]
    assert free_bytes(cpu) == 4 * GIB
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(cpu) == 4 * GIB
    (tmp_path / "memory.max").write_text(f"{3 * GIB}\n")
    (tmp_path / "memory.stat").write_text(f"anon {GIB}\nfile {2 * GIB}\n")
    assert free_bytes(cpu) == 2 * GIB  # what only caches files is given back


def test_a_system_that_does_not_tell_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    assert free_bytes(jax.devices("cpu")[0]) is None


@pytest.mark.parametrize(
    ("stats", "free"), [({"bytes_limit": 5, "bytes_in_use": 2}, 3), (None, None)]
)
def test_an_accelerator_tells_its_own(stats, free):
    device = SimpleNamespace(platform="gpu", memory_stats=lambda: stats)
    assert free_bytes(device) == free
