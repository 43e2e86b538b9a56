"""Outputs on given inputs of functions and programs that models wrote.

A function is `f` of one argument, with JSON values in and out; a program reads standard input. Each
is run twice in the sandbox. Runs that differ, do not end, or are not allowed have no outputs.
Without a sandbox there are no outputs. Expected outputs are never in the sandbox.
"""

import json
import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rlvr_jax.verifiers.programs.python.outputs import same_value
from rlvr_jax.verifiers.programs.tools import run_engine

_SECONDS = 2.0
_MOST_CHARACTERS = 2000  # of a program, and of a value as JSON
_MARK = "outputs "
# Names are refused, not texts: a program may mention time.
_DRIVER = """
import ast, json, sys
given = json.load(sys.stdin)
tree = ast.parse(given["program"])
barred = {"random", "secrets", "uuid", "time", "datetime", "os", "sys", "subprocess", "threading"}
barred |= {"builtins", "calendar", "importlib"}
# Ways to any module, and results that differ from process to process.
names_barred = {"__import__", "__builtins__", "eval", "exec", "hash", "id", "input", "open"}
for node in ast.walk(tree):
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    elif isinstance(node, ast.Raise):
        raise SystemExit("raise")
    elif isinstance(node, ast.Name) and node.id in names_barred:
        raise SystemExit("barred")
    if any(name.split(".")[0] in barred for name in names):
        raise SystemExit("barred")
space = {}
exec(compile(tree, "program", "exec"), space)
found = [space["f"](value) for value in given["inputs"]]
print("MARK" + json.dumps(found, allow_nan=False))
""".replace("MARK", _MARK)


def value_in(text: str) -> Any:
    """The JSON value of a text; None if there is none, or it is null or too long."""
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def run_functions(pairs: Sequence[tuple[str, Sequence[Any]]]) -> list[list[Any] | None]:
    """Outputs of each program on its inputs, None without any; see the module."""
    return _twice(_outputs, pairs, lambda one, other: same_value(json.dumps(other), one))


def run_programs(programs: Sequence[str], inputs: Sequence[str]) -> list[list[str | None]]:
    """Texts that programs print for texts at standard input: one list of M texts per program. None
    means an error, more than two seconds of CPU time, or two runs that differ."""
    pairs = [(program, text) for program in programs for text in inputs]
    outputs = _twice(_printed, pairs, operator.eq)
    return [outputs[k * len(inputs) : (k + 1) * len(inputs)] for k in range(len(programs))]


def _twice(run: Callable[..., Any], jobs: Sequence[Any], same: Callable[..., bool]) -> list[Any]:
    """The results of jobs, each run twice; None without a result, or where the two differ."""

    def agreed(job):
        first = run(*job)
        second = None if first is None else run(*job)
        return first if second is not None and same(first, second) else None

    with ThreadPoolExecutor(max_workers=8) as threads:
        return list(threads.map(agreed, jobs))


def _outputs(program: str, inputs: Sequence[Any]) -> list[Any] | None:
    if len(program) > _MOST_CHARACTERS:
        return None
    given = json.dumps({"program": program, "inputs": list(inputs)})
    outcome = run_engine(_DRIVER, _SECONDS, stdin=given, memory_mb=256, output_bytes=2**16)
    if outcome is None:
        return None
    last = outcome.stdout.rstrip("\n").rpartition("\n")[2]
    if outcome.status != 0 or not last.startswith(_MARK):
        return None
    found = value_in(last.removeprefix(_MARK))
    fits = isinstance(found, list) and len(found) == len(inputs) and None not in found
    return found if fits else None


def _printed(program: str, text: str) -> str | None:
    outcome = run_engine(program, _SECONDS, stdin=text, memory_mb=256)
    return None if outcome is None or outcome.status != 0 else outcome.stdout
