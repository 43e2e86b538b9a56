"""A compiled function: its memory by part, its communication, its estimated time."""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh

from rlvr_jax.parallel import hlo
from rlvr_jax.parallel.kernel_calls import kernel_work
from rlvr_jax.parallel.roofline import Work
from rlvr_jax.parallel.topologies import Chip, Topology
from rlvr_jax.policy import ModelConfig

_LONGEST = 10
_NEEDED = re.compile(r"\(([\d.]+)([KMGT])\) exceeds")
_UNITS = {unit: 1024**power for power, unit in enumerate("KMGT", start=1)}


@dataclass(frozen=True)
class Target:
    """Devices, and the model that runs on them.

    Fields:
      config, meshes: of the model; with them and `tokens`, the length of a response, arrays over
        tokens and vocabulary are distinguished from others.
    """

    topology: Topology
    config: ModelConfig
    meshes: Sequence[Mesh]
    tokens: int


@dataclass(frozen=True)
class ByHand:
    """Facts about a function that are known before it is compiled.

    Fields:
      given: bytes of the function's inputs that are on the devices all the time.
      rest: bytes of other arrays there.
      buffers: bytes of its large arrays.
    """

    given: dict[str, int]
    rest: dict[str, int]
    buffers: dict[str, int]
    work: Work


def measured(
    lowered: jax.stages.Lowered,
    target: Target,
    counted: ByHand,
    fractions: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Compiles a function and returns its memory, communication and estimated time.

    Args:
      lowered: the function, before it is compiled.
      target: chip to compile for.
      counted: work and bytes by formulas, for the roofline bound.
      fractions: of loops that may end early, as for `hlo.read`.
    """
    started = time.perf_counter()
    topology, config, meshes = target.topology, target.config, target.meshes
    given, rest, buffers, work = counted.given, counted.rest, counted.buffers, counted.work
    chip = topology.chip
    by_hand: dict[str, Any] = {"flops": work.flops, "hand_bytes": work.bytes}
    if chip is not None:
        times = (work.flops / chip.flops, work.bytes / chip.hbm_bandwidth)
        by_hand["roofline_seconds"] = max(times)
        by_hand["roofline_limit"] = ("flops", "memory")[times.index(max(times))]
    try:
        compiled, text, made, temporaries = _compiled(lowered, dumped=chip is not None)
    except _TooLargeError as error:
        return {
            "fits": False,
            "bytes": error.bytes + sum(rest.values()),
            "largest_buffers": {**(error.largest or buffers), **given, **rest},
            **by_hand,
            "compile_seconds": time.perf_counter() - started,
        }
    seconds = time.perf_counter() - started
    if (memory := compiled.memory_analysis()) is None:
        raise RuntimeError(f"topology {topology.name!r}: its compiler reports no memory")
    given_bytes = memory.argument_size_in_bytes
    parts = {
        **given,
        "other inputs": given_bytes - sum(given.values()),
        "output": memory.output_size_in_bytes - memory.alias_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes if temporaries is None else temporaries,
        "code": memory.generated_code_size_in_bytes,
        **{f"{name} (beside the program)": size for name, size in rest.items()},
    }
    total = sum(parts.values())
    facts = hlo.read(text, fractions)
    found = {
        "fits": total <= topology.hbm_bytes,
        "bytes": total,
        "parts": parts,
        "collectives": {
            kind: {"count": c.count, "bytes": c.bytes} for kind, c in facts.collectives.items()
        },
        "wide_arrays": hlo.wide_arrays(
            text,
            {config.vocab_size // n for n in (1, *(mesh.shape["tensor"] for mesh in meshes))},
            target.tokens,
            {config.width // n for n in (1, *(mesh.shape["fsdp"] for mesh in meshes))},
        ),
        **by_hand,
        "compile_seconds": seconds,
    }
    if chip is not None:
        if facts.cycles is not None:
            kernels = _kernel_seconds(facts, chip, config)
            found["kernel_seconds"] = kernels
            moves = {name: size / chip.hbm_bandwidth for name, size in facts.moves.items()}
            found["move_seconds"] = sum(moves.values())
            found["compiler_seconds"] = facts.cycles / chip.clock + sum(
                [*kernels.values(), *moves.values()]
            )
            cycles = {name: own / chip.clock for name, own in facts.operations.items()}
            both = Counter(cycles) + Counter(moves)
            found["longest_operations"] = dict(both.most_common(_LONGEST))
        if facts.counted_once:
            found["loops_counted_once"] = list(facts.counted_once)
        if facts.not_estimated:
            found["not_estimated"] = list(facts.not_estimated)
        sent = sum(c.bytes for c in facts.collectives.values())
        found["collective_seconds"] = sent / chip.ici_bandwidth
    if not found["fits"]:
        found["largest_buffers"] = {**(made or buffers), **given, **rest}
    return found


def _kernel_seconds(facts: hlo.Facts, chip: Chip, config: ModelConfig) -> dict[str, float]:
    """Seconds of each Pallas kernel by its own roofline, all its calls together."""
    seconds: dict[str, float] = {}
    for call, runs in facts.kernels.items():
        work = kernel_work(call, config)
        each = max(work.flops / chip.flops, work.bytes / chip.hbm_bandwidth)
        seconds[call.name] = seconds.get(call.name, 0) + runs * each
    return seconds


class _TooLargeError(Exception):
    """The compiler has no place for a program.

    Fields:
      bytes: that it would take.
      largest: its largest arrays, as `hlo.largest` has them; empty where nothing is dumped.
    """

    def __init__(self, size: int, largest: dict[str, int]):
        super().__init__(f"a program of {size} bytes")
        self.bytes, self.largest = size, largest


def _compiled(
    lowered: jax.stages.Lowered, dumped: bool
) -> tuple[jax.stages.Compiled, str, dict[str, int], int | None]:
    """A program, its text, which libtpu cannot give where a SparseCore works, but dumps, its
    largest arrays, and the bytes of its temporaries, where the dumps say.

    Raises:
      _TooLargeError: it does not fit by itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True} if dumped else {}
        try:
            compiled = lowered.compile(options)
        except jax.errors.JaxRuntimeError as error:
            needed = _NEEDED.search(str(error))
            if needed is None:
                raise
            size = int(float(needed[1]) * _UNITS[needed[2]])
            raise _TooLargeError(size, _largest(Path(folder))) from None
        if not dumped:
            return compiled, compiled.as_text() or "", {}, None
        text = _longest(Path(folder), "*after_codegen.txt")
        assigned = _longest(Path(folder), "*after_optimizations-buffer-assignment.txt")
        return compiled, text, _largest(Path(folder)), hlo.temporaries(assigned)


def _largest(folder: Path) -> dict[str, int]:
    report = _longest(folder, "*memory-usage-report.txt")
    return hlo.largest(report, _longest(folder, "*after_optimizations.txt"))


def _longest(folder: Path, pattern: str) -> str:
    """The dump of the compiled function among those of several modules; "" without one."""
    texts = sorted(folder.glob(pattern), key=lambda path: path.stat().st_size)
    return texts[-1].read_text() if texts else ""
