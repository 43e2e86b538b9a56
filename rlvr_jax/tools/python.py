"""An interpreter as a tool: its state is the calls so far, run again in a fresh sandbox."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence

from rlvr_jax.sandbox import Limits, Sandbox
from rlvr_jax.tools.base import Lost, Tool, ToolError

__all__ = ["python", "run_calls"]

# Runs what was called before without its output, then the call; like a notebook it shows the value
# of a last expression. An exception is told by its last lines, as the policy wrote them, and by the
# exit status.
_PROGRAM = """
import ast, contextlib, io, json, sys, traceback
*before, now = json.load(open("calls.json"))
space = {"__name__": "__main__"}
for source in before:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(compile(source, "<call>", "exec"), space)
        except Exception:
            pass
try:
    tree = ast.parse(now, "<call>")
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "<call>", "exec"), space)
    if last is not None:
        value = eval(compile(last, "<call>", "eval"), space)
        if value is not None:
            print(repr(value))
except Exception as error:
    print("".join(traceback.format_exception_only(error)).strip(), file=sys.stderr)
    sys.exit(1)
"""

LIMITS = Limits(wall_seconds=6.0, cpu_seconds=5.0)
"""Of a call with all before it."""


def run_calls(calls: Sequence[str], limits: Limits = LIMITS) -> tuple[str, bool]:
    """What the last of some programs prints in a fresh sandbox, behind those before it, which share
    its names and whose output nobody reads; and whether it failed.

    Raises:
      ToolError: it passed a limit.
      Lost: the sandbox was ended from outside.
    """
    outcome = _sandbox(limits).run(_PROGRAM, files={"calls.json": json.dumps(list(calls))})
    if outcome.reason == "lost":
        raise Lost(outcome.stderr)
    if outcome.reason:
        raise ToolError(f"stopped: the program passed its limit of {outcome.reason}")
    parts = outcome.stdout.rstrip(), outcome.stderr.rstrip()
    return "\n".join(filter(None, parts)), outcome.status != 0


def python(name: str = "python", limits: Limits = LIMITS) -> Tool:
    """Runs Python in the sandbox and says what was printed.

    Names that a call makes are there in the next one: all calls so far run again, so the limits are
    those of all of them together.

    Args:
      name: by which it is called.
      limits: of a call with all before it.
    """

    def run(arguments, state):
        calls = (*(state or ()), str(arguments["code"]))
        return calls, run_calls(calls, limits)[0]

    schema = {"code": {"type": "string"}}
    description = "Runs Python code and shows what it prints; names stay from call to call."
    return Tool(name, description, schema, run, seconds=limits.wall_seconds + 30.0)


@functools.cache
def _sandbox(limits: Limits) -> Sandbox:
    workers = max(1, min(8, os.cpu_count() or 1))
    return Sandbox(limits, workers=workers)
