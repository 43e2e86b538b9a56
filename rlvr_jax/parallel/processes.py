"""Several processes as one program: start-up, agreement, and the exit when one must stop.

Every host runs the same command. Processes differ in their devices and rows only; random numbers
and decisions are equal on all of them.
"""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from rlvr_jax.parallel.programs import keep_programs

_ADDRESS, _COUNT, _INDEX = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
_FORCED = "xla_force_host_platform_device_count"
_MOST_CPU_DEVICES = 8
_DEVICES = Path("/dev")
_TPU_DEVICES = ("accel[0-9]*", "vfio/[0-9]*")
_GPU_DEVICES = ("nvidia[0-9]*", "kfd")


def start() -> None:
    """Connects the processes of a job, if it has several, and caches compiled functions on disk
    (`keep_programs`). Call it before any array is made.

    The first environment that applies decides about the processes:
      The variables JAX_COORDINATOR_ADDRESS (host:port of process 0), JAX_NUM_PROCESSES and
      JAX_PROCESS_ID.
      A SLURM step of several tasks (`srun`): one process per task, one GPU each.
      A Cloud TPU VM: the hosts of its slice.

    A single process gets one CPU device per core, unless NPROC (the number of threads) or
    XLA_FLAGS sets their number.

    Raises:
      ValueError: some of the three variables are missing, or are not numbers.
    """
    keep_programs()
    if jax.distributed.is_initialized():
        return
    given = {name: os.environ.get(name, "") for name in (_ADDRESS, _COUNT, _INDEX)}
    if any(given.values()):
        for name, value in given.items():
            if not value or (name != _ADDRESS and not value.isdecimal()):
                wanted = "host:port" if name == _ADDRESS else "a number"
                raise ValueError(f"{name} must be {wanted} if the other two are set, got {value!r}")
        jax.distributed.initialize(given[_ADDRESS], int(given[_COUNT]), int(given[_INDEX]))
    elif _in_slurm_step() or _on_cloud_tpu():
        jax.distributed.initialize()
    elif not (os.environ.get("NPROC") or _FORCED in os.environ.get("XLA_FLAGS", "")):
        # A small model is sampled from with one device per core (`sampling_mesh`).
        jax.config.update("jax_num_cpu_devices", min(num_cores(), _MOST_CPU_DEVICES))


def check_alone() -> None:
    """Refuses a job of several processes, as far as the environment shows one.

    Raises:
      ValueError: it does.
    """
    if any(os.environ.get(name) for name in (_ADDRESS, _COUNT, _INDEX)) or _in_slurm_step():
        raise ValueError(
            "this command starts its own runs and must be a single process, got a job of several"
            " processes; start `python -m rlvr_jax train` in every process"
        )


def num_cores() -> int:
    """Cores that this process may use."""
    # Only Linux knows which; elsewhere all of them.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def has_accelerator() -> bool:
    """Whether JAX has a GPU or a TPU, found without starting JAX, which would occupy it."""
    return os.environ.get("JAX_PLATFORMS") != "cpu" and _has((*_GPU_DEVICES, *_TPU_DEVICES))


def is_first() -> bool:
    """Whether this is the process that prints and writes files."""
    return jax.process_index() == 0


def barrier(name: str) -> None:
    """Waits until all processes call it."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)


def first_says(value: bool) -> bool:
    """The first process's value on every process, for decisions by the clock."""
    if jax.process_count() == 1:
        return value
    return bool(multihost_utils.broadcast_one_to_all(np.asarray(value)))


def gather(value: Any) -> list[Any]:
    """The value of every process, in their order, on every process.

    Args:
      value: a JSON value; tuples come back as lists.
    """
    if jax.process_count() == 1:
        return [value]
    own = np.frombuffer(json.dumps(value).encode(), np.uint8)
    sizes = multihost_utils.process_allgather(np.asarray(own.size, np.int32))
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: own.size] = own
    rows = multihost_utils.process_allgather(padded)
    return [json.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]


def must_stop(step: int, first_step: int = 0) -> bool:
    """Whether some process got SIGTERM (a pre-emption), and this is the step to stop before.

    All processes call it before every step, with the same result; a single process gets False.

    Args:
      first_step: step at which the run starts or resumes. JAX stops at the step after the last
        call. A signal during the start is noticed only if no step from 0 on is left out.
    """
    if jax.process_count() == 1:
        return False
    asked = range(step + 1) if step == first_step else (step,)
    return any([multihost_utils.reached_preemption_sync_point(number) for number in asked])


def _in_slurm_step() -> bool:
    # A batch script also has the number of tasks; only processes of `srun` have the step's nodes.
    tasks = os.environ.get("SLURM_NTASKS", "1")
    return "SLURM_STEP_NODELIST" in os.environ and tasks.isdecimal() and int(tasks) > 1


def _on_cloud_tpu() -> bool:
    if os.environ.get("JAX_PLATFORMS", "tpu").split(",")[0] != "tpu":
        return False
    has_library = importlib.util.find_spec("libtpu") is not None
    return has_library and _has(_TPU_DEVICES)


def _has(devices: tuple[str, ...]) -> bool:
    # A container may have others than the first.
    return any(next(_DEVICES.glob(device), None) for device in devices)
