"""One program on several processes; what one process alone does differently, which is nothing."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from rlvr_jax import parallel
from rlvr_jax.parallel import processes

NAMES = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            ("", "2", "0"),
            "JAX_COORDINATOR_ADDRESS must be host:port if the other two are set, got ''",
        ),
        (("localhost:1", "", "0"), "JAX_NUM_PROCESSES must be a number if the other two are set"),
        (("localhost:1", "2", "first"), "JAX_PROCESS_ID must be a number .*, got 'first'"),
    ],
)
def test_half_an_address_of_a_job_is_refused(values, sentence, monkeypatch):
    for name, value in zip(NAMES, values, strict=True):
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=sentence):
        parallel.start()
    assert not jax.distributed.is_initialized()


def test_cores_are_counted_where_no_call_says_which_are_ours(monkeypatch):
    assert processes.num_cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processes.num_cores() == os.cpu_count()


def test_an_accelerator_is_any_of_its_devices_unless_jax_is_told_to_leave_it(monkeypatch, tmp_path):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(processes, "_DEVICES", tmp_path)
    assert not parallel.has_accelerator()
    (tmp_path / "nvidia3").touch()
    assert parallel.has_accelerator()
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert not parallel.has_accelerator()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        # A batch script of four tasks that was not started by srun, and a step of one.
        {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
        {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "1", "SLURM_STEP_NODELIST": "node1"},
    ],
    ids=["nothing", "batch script", "one task"],
)
def test_a_process_alone_starts_nothing(environment, monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    parallel.start()
    assert not jax.distributed.is_initialized()
    assert parallel.is_first()


@pytest.mark.parametrize(
    "environment",
    [
        {"JAX_COORDINATOR_ADDRESS": "localhost:1", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "0"},
        {"SLURM_NTASKS": "4", "SLURM_STEP_NODELIST": "node[1-2]"},
    ],
    ids=["variables", "step of four tasks"],
)
def test_a_command_that_starts_its_runs_itself_is_no_job_of_several(environment, monkeypatch):
    for name in (*NAMES, "SLURM_STEP_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    parallel.check_alone()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="must be a single process, got a job of several"):
        parallel.check_alone()


def test_a_process_alone_agrees_with_itself():
    assert parallel.gather({"a": (1, 2)}) == [{"a": (1, 2)}]
    assert parallel.first_says(True) and not parallel.first_says(False)
    assert not parallel.must_stop(0)
    parallel.barrier("alone")


def test_a_signal_during_the_start_of_a_resumed_job_is_heard(monkeypatch):
    """JAX says yes at one number only: the one behind the last it was asked of, at first 0."""
    asked = []

    def reached(number):
        asked.append(number)
        return number == 1

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(processes.multihost_utils, "reached_preemption_sync_point", reached)
    assert parallel.must_stop(4, first_step=4)
    assert asked == [0, 1, 2, 3, 4]
    assert not parallel.must_stop(5, first_step=4)
    assert asked[5:] == [5]


@pytest.mark.parametrize("spec", ["data=8", "data=2,tensor=4", "fsdp=2,tensor=4"])
def test_arrays_come_back_as_they_were(spec):
    mesh = parallel.make_mesh(spec)
    tree = {"a": np.arange(16, dtype=np.int32).reshape(8, 2), "b": (np.ones(8, bool), None)}
    placed = parallel.distribute(tree, parallel.row_sharding(mesh))
    assert placed["a"].sharding == parallel.row_sharding(mesh)
    assert parallel.bytes_per_device(placed) * mesh.shape["data"] * mesh.shape["fsdp"] == 64 + 8
    found = parallel.fetch(placed)
    assert found["b"][1] is None and found["a"].dtype == np.int32
    jax.tree.map(np.testing.assert_array_equal, found, tree)


def test_a_mesh_is_regrouped_in_the_order_of_its_devices():
    mesh = parallel.make_mesh("fsdp=8")
    other = parallel.regrouped(mesh, "data=2,tensor=4")
    assert other.devices.shape == (2, 1, 4)
    assert other.devices.reshape(-1).tolist() == mesh.devices.reshape(-1).tolist()
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, PartitionSpec("fsdp")))
    wanted = NamedSharding(other, PartitionSpec("tensor"))
    moved = jax.jit(lambda x: x, out_shardings=wanted)(x)
    assert moved.sharding == wanted
    np.testing.assert_array_equal(moved, x)
    with pytest.raises(ValueError, match="sizes must multiply to the 8 devices, got 'data=4'"):
        parallel.regrouped(mesh, "data=4")


class Chip:
    """What a mesh asks of a TPU, for one of a slice of 4 x 8."""

    platform, device_kind, core_on_chip, slice_index = "tpu", "TPU v6 lite", 0, 0

    def __init__(self, number):
        self.id, self.process_index = number, number // 4
        self.coords = number % 4, number // 4, 0


@pytest.mark.parametrize("spec", ["data=16,tensor=2", "fsdp=2,tensor=16", "data=4,tensor=8"])
def test_an_axis_may_be_a_part_of_a_torus_side(spec):
    mesh = parallel.make_mesh(spec, [Chip(number) for number in range(32)])
    assert dict(mesh.shape) == parallel.mesh_sizes(spec)
    assert sorted(chip.id for chip in mesh.devices.flat) == list(range(32))
    if spec == "data=16,tensor=2":
        for one, other in mesh.devices[:, 0]:
            apart = np.abs(np.subtract(one.coords, other.coords))
            assert apart.sum() == 1, "they exchange most and have to be neighbours"


def test_one_device_is_a_mesh_too():
    assert dict(parallel.one_device_mesh().shape) == {"data": 1, "fsdp": 1, "tensor": 1}
