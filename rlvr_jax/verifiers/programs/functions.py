"""Outputs of functions and programs that models wrote, on given inputs.

A function is `f` of one argument, with JSON values in and out; a program reads standard input. All
runs are in the sandbox, twice; what differs between the two, does not end, or is not allowed has no
outputs. What is expected is never in the sandbox.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rlvr_jax.verifiers.programs.outputs import same_value
from rlvr_jax.verifiers.programs.tools import in_sandbox, limits

__all__ = ["run_functions", "run_programs", "value_in"]

SECONDS = 2.0
MOST_CHARACTERS = 2000
"""Of a program, and of a value as JSON."""
_MARK = "outputs "
# Names, not texts, are barred: a program may speak of time.
_DRIVER = """
import ast, json, sys
given = json.load(sys.stdin)
tree = ast.parse(given["program"])
barred = {"random", "secrets", "uuid", "time", "datetime", "os", "sys", "subprocess", "threading"}
barred |= {"builtins", "calendar", "importlib"}
# Ways to any module, and what differs from process to process.
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
    """The JSON value of a text, None if it is none, is null, or is too long."""
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def run_functions(pairs: Sequence[tuple[str, Sequence[Any]]]) -> list[list[Any] | None]:
    """Outputs of each program on its inputs, None where there are none; see the module.

    Where the machine has nothing to keep programs in, no program has any.
    """

    def outputs(pair):
        first, second = (_once(*pair) for _ in range(2))
        same = first is not None and second is not None and same_value(second, json.loads(first))
        return json.loads(first) if same else None

    with ThreadPoolExecutor(max_workers=8) as threads:
        return list(threads.map(outputs, pairs))


def _once(program: str, inputs: Sequence[Any]) -> str | None:
    """The outputs of one run as JSON."""
    if len(program) > MOST_CHARACTERS:
        return None
    given = json.dumps({"program": program, "inputs": list(inputs)})
    bounds = limits(SECONDS, memory_mb=256, output_bytes=2**16)
    outcome = in_sandbox(lambda sandbox: sandbox.run(_DRIVER, stdin=given, limits=bounds))
    if outcome is None:
        return None
    last = outcome.stdout.rstrip("\n").rpartition("\n")[2]
    if outcome.status != 0 or not last.startswith(_MARK):
        return None
    found = value_in(last.removeprefix(_MARK))
    fits = isinstance(found, list) and len(found) == len(inputs) and None not in found
    return json.dumps(found) if fits else None


def run_programs(programs: Sequence[str], inputs: Sequence[str]) -> list[list[str | None]]:
    """What programs print on texts at standard input, N lists of M; None for an error, the limit of
    two seconds of CPU time, or two runs that differ.

    Where the machine has nothing to keep programs in, nothing is printed.
    """
    bounds = limits(SECONDS, memory_mb=256)

    def printed(pair):
        program, text = pair
        found = []
        for _ in range(2):
            outcome = in_sandbox(lambda sandbox: sandbox.run(program, stdin=text, limits=bounds))
            if outcome is None or outcome.status != 0:
                return None
            found.append(outcome.stdout)
        return found[0] if found[0] == found[1] else None

    pairs = [(program, text) for program in programs for text in inputs]
    with ThreadPoolExecutor(max_workers=8) as threads:
        told = list(threads.map(printed, pairs))
    return [told[k * len(inputs) : (k + 1) * len(inputs)] for k in range(len(programs))]
