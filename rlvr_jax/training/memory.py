"""The memory of a policy, computed before any of it is allocated."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import optax

from rlvr_jax.objectives import Critic
from rlvr_jax.parallel import bytes_per_device, parameter_shardings, placed_shapes
from rlvr_jax.policy import Model
from rlvr_jax.policy.parameters import parameter_shapes
from rlvr_jax.training.critic import critic_shapes
from rlvr_jax.training.layout import state_shardings, trained_shapes

_UNITS = ((30, "GiB"), (20, "MiB"), (10, "KiB"))
_MEMINFO = Path("/proc/meminfo")
_CGROUPS = Path("/sys/fs/cgroup")
# File with the limit, file with the used bytes, and the name there of bytes that stay in use.
_LIMITS = (
    ("memory.max", "memory.stat", "anon"),
    ("memory/memory.limit_in_bytes", "memory/memory.stat", "total_rss"),
)


def least_bytes(
    model: Model,
    optimizer: optax.GradientTransformation | None = None,
    frozen: bool = False,
    critic: tuple[Critic, optax.GradientTransformation] | None = None,
) -> dict[str, int]:
    """Bytes on each device that a run cannot do without; activations and the sampler's cache come
    on top.

    Examples:
      >>> import optax
      >>> from rlvr_jax import policy, tasks
      >>> from rlvr_jax.parallel import one_device_mesh
      >>> from rlvr_jax.training.memory import least_bytes
      >>> from rlvr_jax.types import replace
      >>> model, _ = policy.load(tasks.load("brackets").base_model)
      >>> least_bytes(replace(model, mesh=one_device_mesh()), optax.adam(1e-3))
      {'weights': 430848, 'gradient': 430848, 'optimizer': 861700}

    Args:
      model: on its mesh.
      optimizer: None: the policy is sampled from and not trained.
      frozen: whether frozen weights exist: the base of adapters, or a reference.
      critic: with its optimizer; None: there is none.
    """
    shardings = parameter_shardings(model.config, model.mesh)
    whole = bytes_per_device(placed_shapes(parameter_shapes(model.config), shardings))
    if optimizer is None:
        return {"weights": whole}
    trained = trained_shapes(model)
    shardings = state_shardings(model, optimizer).optimizer_state
    optimizer_state = placed_shapes(jax.eval_shape(optimizer.init, trained), shardings)
    weights = bytes_per_device(trained)
    parts = {
        "weights": weights,
        "gradient": weights,
        "optimizer": bytes_per_device(optimizer_state),
    }
    if frozen:
        parts["frozen weights"] = whole
    if critic is not None:
        # With its gradient; policy and critic are not updated at the same time.
        state = critic_shapes(model, *critic)
        parts["critic"] = bytes_per_device(state)
        parts["gradient"] = max(weights, bytes_per_device(state.params.get("trunk", {})))
    return parts


def describe_memory(parts: dict[str, int]) -> str:
    """One line with the memory that is known before the first step.

    Examples:
      >>> from rlvr_jax.training.memory import describe_memory
      >>> describe_memory({"weights": 2**30, "gradient": 2**20})
      'memory of a device: weights 1 GiB, gradient 1 MiB; activations and logits need more'

    Args:
      parts: bytes on a device, by name.
    """
    listed = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items())
    return f"memory of a device: {listed}; activations and logits need more"


def lacks_memory(error: BaseException) -> bool:
    """Whether an error means that memory could not be allocated."""
    texts = ("RESOURCE_EXHAUSTED", "can't start new thread")
    return isinstance(error, MemoryError) or any(text in str(error) for text in texts)


def check_memory(path: str, least: dict[str, int], devices: Sequence[Any]) -> None:
    """Refuses a model that cannot fit.

    Args:
      devices: of this process; CPU devices share the memory of the host.
    """
    shared = devices[0].platform == "cpu"
    free = free_bytes(devices[0])
    if shared:
        least = {name: size * len(devices) for name, size in least.items()}
    wanted = sum(least.values())
    if free is not None and wanted > free:
        parts = ", ".join(f"{name} {size_text(size)}" for name, size in least.items())
        place = "this host" if shared else devices[0].device_kind
        raise ValueError(
            f"model {path} needs at least {size_text(wanted)} of memory ({parts}), found"
            f" {size_text(free)} free on {place}; --lora-rank, or a --mesh of more"
            f" {'hosts' if shared else 'devices'}, takes less"
        )


def free_bytes(device: Any) -> int | None:
    """Memory that can still be allocated for a device of JAX; None where it is unknown."""
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        if "bytes_limit" not in stats:
            return None
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    if not _MEMINFO.is_file():
        return None
    free = [1024 * _numbers(_MEMINFO)["MemAvailable:"]]
    for limit, used, name in _LIMITS:
        # "max": this group has no limit.
        if (_CGROUPS / limit).is_file() and (
            text := (_CGROUPS / limit).read_text().strip()
        ) != "max":
            free.append(int(text) - _numbers(_CGROUPS / used)[name])
    return min(free)


def size_text(size: int) -> str:
    """A number of bytes as a text of three digits: "1.5 GiB", "411 KiB"."""
    power, unit = next(one for one in _UNITS if size >= 0.1 * 2 ** one[0] or one is _UNITS[-1])
    return f"{size / 2**power:.3g} {unit}"


def _numbers(path: Path) -> dict[str, int]:
    """Lines of a name, a number and perhaps a unit."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number, *_ in lines}
