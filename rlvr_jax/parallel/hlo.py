"""Reads collectives, the compiler's cycles and array shapes from the text of a compiled function.

The body of a loop occurs in the text once. Its number of rounds is an attribute, or the largest
constant that its condition compares the counter with. For a loop that may end earlier this is the
maximum, unless the caller knows the mean. A loop whose bound is known at run time only counts once,
and is named.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_KINDS = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")

_ARRAY = re.compile(r"\b([a-z]+\d*[a-z\d]*)\[([\d,]*)\]")
_COMPUTATION = re.compile(r"(?m)^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_NAME = r"%?([\w.\-]+)"
_WHILE = re.compile(rf" while\(.*?condition={_NAME}, body={_NAME}")
_CALLED = re.compile(rf"(?:calls|to_apply|true_computation|false_computation)={_NAME}")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_KNOWN = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_BOUND = re.compile(r"= [su](?:32|64)\[\]\S* constant\((\d+)\)")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_NO_ESTIMATE = 2**63 - 1  # cycles of what a SparseCore is given
_COLLECTIVE = re.compile(rf"^\s*(?:ROOT )?{_NAME} = (.*?) ({'|'.join(_KINDS)})(-start)?\((.*?)\)")
_CHANNEL = re.compile(r"channel_id=(\d+)")
_KERNEL = re.compile(
    rf"^\s*(?:ROOT )?{_NAME} = (\(.*?\)|\S+) custom-call\(.*custom_call_target=\"tpu_custom_call\","
    r" operand_layout_constraints=\{(.*?\})\}"
)
_MOVE = re.compile(rf"^\s*(?:ROOT )?{_NAME} = (\(.*?\)|\S+) (gather|scatter|sort)\((.*?)\)")
_SPARSE_CORE = '}, execution_thread="sparsecore"'
_DEFINED = re.compile(rf"^\s*(?:ROOT )?{_NAME} = (\(.*?\)|\S+) [\w\-]+\(")


# A line of libtpu's report of memory: cumulative size, size, offset, values in it, their shapes.
_BUFFER = re.compile(r"^\s*[\d.]+\w+\(.*?\);\s*([\d.]+)([KMGT]?)i?B;[^;]*;[^;]*;\s*(.*)$")
_UNITS = {unit: 1024**power for power, unit in enumerate(["", *"KMGT"])}
_OPERATION = re.compile(r'op_name="([^"]*)"')
# In libtpu's assignment of buffers; those of memories of their own ("color 1") have no such line.
_TEMPORARIES = re.compile(r"(?m)^allocation \d+: size (\d+), (?:page \d+, )?preallocated-temp:")


@dataclass(frozen=True)
class Collective:
    """All collectives of a kind.

    Fields:
      count: how often one runs.
      bytes: of the larger of operand and result on each device, over all runs.
    """

    count: int
    bytes: int


class Typed(NamedTuple):
    """Type, as "bf16", and shape of an array."""

    kind: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Without padding; of less than a byte each they are rounded up together."""
        bits = re.search(r"\d+", self.kind)  # pred has none in its name
        return -(-(int(bits[0]) if bits else 8) * math.prod(self.shape) // 8)


class KernelCall(NamedTuple):
    """A call of a kernel of Pallas.

    Fields:
      name: of the kernel.
      operands, results: the arrays.
    """

    name: str
    operands: tuple[Typed, ...]
    results: tuple[Typed, ...]


class Facts(NamedTuple):
    """Operations of one run of a compiled function on each device.

    Fields:
      collectives: by kind, those that occur.
      cycles: sum of the compiler's estimates of fusions. Collectives and kernels of Pallas have
        none. None where the compiler estimates nothing (CPU).
      operations: cycles by place in the model and shape of the result, those of most cycles first.
      kernels: calls of Pallas kernels, and how often each runs.
      moves: bytes read and written by gathers, scatters and sorts without cycles, and by a
        SparseCore, by place and shape.
      counted_once: places of the loops whose number of rounds is not in the text.
      not_estimated: operations without cycles; they count as 0.
    """

    collectives: dict[str, Collective]
    cycles: int | None
    operations: dict[str, int]
    kernels: dict[KernelCall, float]
    moves: dict[str, float]
    counted_once: tuple[str, ...]
    not_estimated: tuple[str, ...]


def read(text: str, fractions: Mapping[str, float] | None = None) -> Facts:
    """Facts of a program.

    Args:
      text: of the optimized HLO module, from `Compiled.as_text`.
      fractions: for loops that may end earlier, by a part of their name (`jax.named_scope`): mean
        rounds / largest number of rounds.
    """
    computations, entry = _computations(text)
    times: dict[str, float] = {}
    untimed: dict[str, float] = {}  # of them those that are no part of what has cycles
    once: dict[str, None] = {}  # a set in the order of the program

    def visit(name: str, runs: float, timed: bool = False) -> None:
        times[name] = times.get(name, 0) + runs
        if not timed:
            untimed[name] = untimed.get(name, 0) + runs
        for called, each, loop, has_cycles in _called(
            computations, computations[name], fractions or {}
        ):
            if each is None:
                once[loop] = None
            visit(called, runs * (1 if each is None else each), timed or has_cycles)

    visit(entry, 1)
    sent: dict[tuple[str, str], tuple[float, float]] = {}
    operations: dict[str, float] = {}
    missing: dict[str, None] = {}
    kernels: dict[KernelCall, float] = {}
    for name, runs in times.items():
        body = computations[name]
        for operation, cycles in _estimates(body):
            if cycles == _NO_ESTIMATE:
                missing[operation] = None
                continue
            operations[operation] = operations.get(operation, 0) + runs * cycles
        for call in _kernels(body):
            kernels[call] = kernels.get(call, 0) + runs
        for kind, channel, size in _collectives(body):
            # One that runs beside products is written into each of their fusions.
            key = kind, channel or f"{name} {size}"
            sent[key] = max(sent.get(key, (0, 0)), (runs, runs * size))
    moves: dict[str, float] = {}
    for name, runs in untimed.items():
        for operation, size in _moves(computations[name]):
            moves[operation] = moves.get(operation, 0) + runs * size
    kinds = {}
    for kind in _KINDS:
        found = [value for (own, _), value in sent.items() if own == kind]
        if found:
            count, size = map(sum, zip(*found, strict=True))
            kinds[kind] = Collective(round(count), round(size))
    ranked = {name: round(own) for name, own in operations.items()}
    ranked = dict(sorted(ranked.items(), key=lambda item: -item[1]))
    total = sum(ranked.values()) or None
    return Facts(kinds, total, ranked, kernels, moves, tuple(once), tuple(missing))


def wide_arrays(text: str, vocabulary: set[int], tokens: int, widths: set[int]) -> list[str]:
    """Shapes of arrays over tokens and vocabulary, of which there must be none.

    Args:
      text: optimized HLO of a compiled function.
      vocabulary: entries of the vocabulary, and of a device's part of it.
      tokens: of one response. An array with at least so many numbers per entry is one over tokens.
        The logits of a step of the sampler have as many numbers per entry as there are rows.
      widths: products of the other axes of weights; arrays with these sizes are ignored.
    """
    found = set()
    for kind, shape in _ARRAY.findall(text):
        axes = [int(axis) for axis in shape.split(",") if axis]
        for index, axis in enumerate(axes):
            others = math.prod(axes[:index] + axes[index + 1 :])
            if axis in vocabulary and others >= tokens and others not in widths:
                found.add(f"{kind}[{shape}]")
    return sorted(found)


def largest(report: str, text: str, most: int = 5) -> dict[str, int]:
    """The largest arrays of a program, with their operations, and their bytes.

    Args:
      report: libtpu's report of the memory of a program. Only the first kind of memory in it is
        read.
    """
    found: dict[str, int] = {}
    first = report.partition("Memory Space:")[2].partition("Memory Space:")[0]
    for line in first.splitlines():
        if len(found) == most:
            break
        if buffer := _BUFFER.match(line):
            size, unit, shapes = buffer.groups()
            # Several values share a place, one after the other; the largest needs it.
            kinds = [f"{kind}[{axes}]" for kind, axes in _ARRAY.findall(shapes)]
            shape = max(kinds, key=bytes_of, default=shapes.strip())
            found.setdefault(f"{shape}{_maker(shape, text)}", int(float(size) * _UNITS[unit]))
    return found


def temporaries(assignment: str) -> int | None:
    """Bytes of temporaries in a device's memory; None if the text does not have them.

    With a SparseCore, `memory_analysis` is too large (libtpu 0.0.42.1: 28.1 instead of 17.4 GiB).
    The compiler had placed that function in 31.2 GiB, with 11.8 GiB of inputs and outputs.

    Args:
      assignment: libtpu's assignment of buffers.
    """
    found = _TEMPORARIES.search(assignment)
    return int(found[1]) if found else None


def _maker(shape: str, text: str) -> str:
    """The operation of the model that makes an array of a shape, as far as the text has it."""
    for line in text.splitlines():
        if f" = {shape}" in line and (operation := _OPERATION.search(line)):
            return f" of {operation[1].split('/', 2)[-1]}"
    return ""


def bytes_of(shape: str) -> int:
    """Bytes of all arrays in the text of a shape, without padding: "(f32[2,3], s32[])" has 28."""
    return sum(array.bytes for array in _arrays(shape))


def _arrays(shape: str) -> tuple[Typed, ...]:
    """The arrays in the text of a shape."""
    return tuple(
        Typed(kind, tuple(int(n) for n in axes.split(",") if n))
        for kind, axes in _ARRAY.findall(shape)
    )


def _computations(text: str) -> tuple[dict[str, str], str]:
    """The body of each computation by its name, and the name of the first to run."""
    heads = list(_COMPUTATION.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    bodies = {h[2]: text[h.end() : end] for h, end in zip(heads, ends, strict=True)}
    return bodies, next(head[2] for head in heads if head[1])


def _called(
    computations: dict[str, str], body: str, fractions: Mapping[str, float]
) -> Iterator[tuple[str, float | None, str, bool]]:
    """What a computation calls, how often each of its runs does, None where the text does not say,
    the place of the loop that it is the body of, and whether the call has cycles."""
    for line in body.splitlines():
        if loop := _WHILE.search(line):
            condition, own = loop.groups()
            asked = computations[condition]
            inside = (computations[name] for name in _CALLED.findall(asked))
            named = _OPERATION.search(line)
            place = named[1].split("/", 1)[-1] if named else own
            if known := _KNOWN.findall(line):
                yield own, int(known[0]), place, False
                continue
            bounds = [int(bound) for bound in _BOUND.findall("\n".join([asked, *inside]))]
            fraction = next((x for name, x in fractions.items() if name in place.split("/")), 1)
            yield own, fraction * max(bounds) if bounds else None, place, False
            continue
        names = _CALLED.findall(line)
        for branches in _BRANCHES.findall(line):
            names += re.findall(_NAME, branches)
        for name in names:
            if name in computations:
                yield name, 1, "", _has_cycles(line)


def _has_cycles(line: str) -> bool:
    estimate = _CYCLES.search(line)
    return estimate is not None and int(estimate[1]) != _NO_ESTIMATE


def _estimates(body: str) -> Iterator[tuple[str, int]]:
    """Operations of a computation, and the cycles of one run of each."""
    for line in body.splitlines():
        if estimate := _CYCLES.search(line):
            yield _place(line), int(estimate[1])


def _place(line: str) -> str:
    """The place of an operation in the model, and the shape of its result."""
    defined, named = _DEFINED.match(line), _OPERATION.search(line)
    name, shape = defined.groups() if defined else ("?", "")
    # The number of a fusion says nothing; nor does how its arrays lie in memory.
    place = named[1].split("/", 1)[-1] if named else re.sub(r"[.\d]+$", "", name)
    return f"{place} {re.sub(r'{.*?}', '', shape)}".strip()


def _moves(body: str) -> Iterator[tuple[str, int]]:
    """Gathers, scatters and sorts of a computation, and the bytes that each reads and writes: twice
    those of its result, or of the updates of a scatter."""
    shapes, sparse_core = {}, _SPARSE_CORE in body
    for line in body.splitlines():
        if defined := _DEFINED.match(line):
            shapes[defined[1]] = defined[2]
        if move := _MOVE.match(line):
            _, shape, kind, operands = move.groups()
            if kind == "scatter":
                names = re.findall(_NAME, operands)
                shape = " ".join(shapes.get(name, "") for name in names[len(names) // 2 + 1 :])
            yield _place(line), 2 * bytes_of(shape)
        elif sparse_core and defined and " custom-call(" in line:
            yield f"SparseCore {_place(line)}", 2 * bytes_of(defined[2])


def _kernels(body: str) -> Iterator[KernelCall]:
    """Calls of Pallas kernels in a computation."""
    for line in body.splitlines():
        if "tpu_custom_call" in line and (call := _KERNEL.match(line)):
            name, results, operands = call.groups()
            arrays = map(_arrays, (operands, results))
            yield KernelCall(re.sub(r"[.\d]+$", "", name), *arrays)


def _collectives(body: str) -> Iterator[tuple[str, str | None, int]]:
    """Kind, channel and bytes of the collectives of a computation."""
    shapes = None
    for line in body.splitlines():
        if found := _COLLECTIVE.match(line):
            if shapes is None:
                lines = map(_DEFINED.match, body.splitlines())
                shapes = {own[1]: bytes_of(own[2]) for own in lines if own}
            _, shape, kind, started, operands = found.groups()
            given = sum(shapes.get(name, 0) for name in re.findall(_NAME, operands))
            # What is started holds its operand beside its result.
            result = bytes_of(shape) - (given if started and kind != "all-reduce" else 0)
            channel = _CHANNEL.search(line)
            yield kind, channel[1] if channel else None, max(given, result)
