"""Memory of a run: the bytes known before the first step, and messages if it is too little."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import jax

from rlvr_jax.experience.sampling import Sampler
from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.runs.run import Run
from rlvr_jax.training.memory import free_bytes, lacks_memory, size_text
from rlvr_jax.training.plan import BatchPlan

NEAR = 0.8
"""A forecast above this fraction of the memory is a warning, since activations, logits and
generated code are not in it. Chosen, not measured."""

_CACHE = "sampler's cache"


def check_forecast(run: Run) -> str:
    """Compares the known memory of a run with the available memory; a warning if it is near.

    Gradient and cache are not allocated at the same time. Devices of a CPU share the host's memory.
    """
    device = run.start.model.mesh.local_devices[0]
    free = free_bytes(device)
    if free is None:
        return ""
    shared = device.platform == "cpu"
    mesh, sampling = (
        len(model.mesh.local_devices) if shared else 1
        for model in (run.start.model, run.start.sampler.model)
    )
    parts = {
        name: size * (sampling if name == _CACHE else mesh) for name, size in run.memory.items()
    }
    held = run.start.params if run.start.params is not None else run.weights.loaded
    loaded = sum(
        shard.data.nbytes
        for leaf in jax.tree.leaves(held)
        for shard in leaf.addressable_shards
        if shared or shard.device == device
    )
    room = free + loaded
    beside = sum(size for name, size in parts.items() if name not in ("gradient", _CACHE))
    wanted = beside + max(parts["gradient"], parts[_CACHE])
    if wanted <= NEAR * room:
        return ""
    listed = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items())
    place = "this host" if shared else device.device_kind
    message = (
        f"the run needs {size_text(wanted)} of memory ({listed}), got {size_text(room)} on {place}"
    )
    if wanted <= room:
        return f"{message}; activations and logits need more: {_smaller(run, sampling, 0)}"
    raise ValueError(f"{message}; {_smaller(run, sampling, room - beside)}")


def _smaller(run: Run, devices: int, room: int) -> str:
    """Settings with which the cache is smaller.

    Args:
      devices: number of devices with their caches in one memory.
      room: bytes available for it; 0: any smaller cache.
    """
    sampler, width = run.start.sampler, run.start.train_table.tokens.shape[1]
    now = devices * sampler.cache_bytes(width)

    def fits(other: Sampler) -> bool:
        size = devices * other.cache_bytes(width)
        return size <= room if room else 2 * size <= now

    found = []
    for number, sampling_batch in _sampling_batches(run.config, sampler.samples):
        if fits(replace(sampler, sampling_batch=sampling_batch, at_once=None)):
            found.append(f"--sampling-batches {number}")
            break
    rows, parts = sampler.sampling_batch[0] * sampler.sampling_batch[1], sampler.model.mesh.size
    while rows > parts:
        rows = max(parts, rows // 2 // parts * parts)
        if fits(replace(sampler, at_once=rows)):
            found.append(f"--rows-at-once {rows}")
            break
    if found:
        return f"{' or '.join(found)} {'fits' if room else 'takes half as much or less'}"
    return (
        "fewer --response-tokens, --compute-dtype bfloat16, a smaller policy or a --mesh of more"
        " devices takes less"
    )


def _sampling_batches(config: TrainConfig, samples: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Values of `--sampling-batches` above that of the run, and the sampling batch of each."""
    rows = config.sampling.prompts_per_step * samples
    for number in range(max(config.sampling.sampling_batches, 1) + 1, rows + 1):
        if rows % number == 0:
            try:
                yield number, config.replace(sampling_batches=number).sampling_batch(samples)
            except ValueError:
                continue


@contextmanager
def names_memory(run: Run, doing: str, flags: str) -> Iterator[None]:
    """Turns a failed allocation into a ValueError of one sentence.

    Args:
      flags: "sampling" or "update": the kind of settings that the message suggests.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        mend = _smaller(run, 1, 0) if flags == "sampling" else _more_micro_batches(run.config.plan)
        raise ValueError(f"memory ran out {doing}; {mend}") from error


def _more_micro_batches(plan: BatchPlan) -> str:
    chunks = max(plan.micro_batches, 1)
    more = next((n for n in range(chunks + 1, plan.rows + 1) if plan.rows % n == 0), None)
    flags = [f"--micro-batches {more}"] if more else []
    return f"{' or '.join([*flags, '--remat layers'])} takes less"
