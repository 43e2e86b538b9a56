"""Time of a computation by operation, from JAX's profiler."""

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData

# They last as long as what runs within them.
_CONTAINERS = ("while", "call", "conditional")


@dataclass(frozen=True)
class Operation:
    """Time of one kind of operation of one compiled function.

    Fields:
      program: name of the compiled function; "" where the profiler has none.
      name: name of the operation without its number; on a GPU, of the kernel.
      seconds: sum over all calls and over devices or threads.
      calls: number of calls.
    """

    program: str
    name: str
    seconds: float
    calls: int


def profiled(function: Callable[[], Any]) -> list[Operation]:
    """Operations that a call runs on the devices, longest first.

    Args:
      function: is called once and must wait for its results. Compilation and host code outside XLA
        are not counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            function()
        spent, calls = defaultdict[Any, float](float), defaultdict[Any, int](int)
        for path in Path(folder).rglob("*.xplane.pb"):
            for program, name, seconds in _events(path):
                spent[program, name] += seconds
                calls[program, name] += 1
    found = [Operation(*key, seconds, calls[key]) for key, seconds in spent.items()]
    return sorted(found, key=lambda operation: -operation.seconds)


def _events(path: Path) -> Iterator[tuple[str, str, float]]:
    """Program, operation and seconds of what ran on a device."""
    for plane in ProfileData.from_file(str(path)).planes:
        on_gpu = plane.name.startswith("/device:GPU")
        for line in plane.lines:
            if on_gpu and not line.name.startswith("Stream"):
                continue  # sums of what the streams say
            for event in line.events:
                stats = dict(event.stats)
                name = re.sub(r"[._]\d+$", "", str(stats.get("hlo_op", event.name)))
                if not (on_gpu or "hlo_op" in stats) or name.startswith(_CONTAINERS):
                    continue
                shown = re.sub(r"[._]\d+$", "", event.name) if on_gpu else name
                yield str(stats.get("hlo_module", "")), shown, event.duration_ns / 1e9
