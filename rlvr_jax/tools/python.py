"""A Python interpreter as a tool; its state is the calls so far, which a fresh sandbox repeats."""

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.sandbox import Limits, shared
from rlvr_jax.tools import replay
from rlvr_jax.tools.base import Lost, Tool, ToolError

LIMITS = Limits(wall_seconds=6.0, cpu_seconds=5.0)
"""Limits of a call together with all previous ones."""


_BOOT = """\
import types
module = types.ModuleType("replay")
exec(compile({source!r}, "<replay>", "exec"), module.__dict__)
module.main()
"""
_MOST_READINGS = 10_000
"""Largest number of entries in a call's record of its clock; a program may have written others."""


class Ran(NamedTuple):
    """The result of a call.

    Fields:
      text: its output.
      failed: it ended with an exception or a status other than 0.
      call: data to repeat it before later calls; None: it ended its interpreter and all its names.
    """

    text: str
    failed: bool
    call: dict[str, Any] | None


def run_calls(before: Sequence[Mapping[str, Any]], code: str, limits: Limits = LIMITS) -> Ran:
    """Runs a call in a fresh sandbox, after the previous calls. These define their names without
    showing output, and read the random numbers and the clock of their first run.

    Args:
      before: `Ran.call` of each previous call, in order.
      limits: limits of all calls together.
    Raises:
      ToolError: a limit was exceeded.
      Lost: the sandbox was ended from outside.
    """
    mark = secrets.token_hex(16)
    seed = before[0]["code"] if before else code
    job = {"before": list(before), "now": code, "seed": seed, "mark": mark}
    program = _BOOT.format(source=Path(replay.__file__).read_text(encoding="utf-8"))
    outcome = shared(limits, most=8).run(program, files={replay.JOB: json.dumps(job)})
    if outcome.reason == "lost":
        raise Lost(outcome.stderr)
    if outcome.reason:
        raise ToolError(f"stopped: the program passed its limit of {outcome.reason}")
    printed, found, rest = outcome.stdout.partition(f"\n{mark} ")
    record, _, late = rest.partition("\n")
    parts = [printed + late, outcome.stderr]
    if not found and outcome.status:
        parts.append(
            f"The interpreter ended with status {outcome.status}; names of this call are gone."
        )
    text = "\n".join(filter(None, map(str.rstrip, parts)))
    call = {"code": code, "clock": _clock(record)} if found else None
    return Ran(text, outcome.status != 0, call)


def python(name: str = "python", limits: Limits = LIMITS) -> Tool:
    """Runs Python in the sandbox and shows its output.

    Names and files of a call are available in the next one, however it ended. All calls so far run
    again, with the random numbers and times that they first read, so the `limits` are for all
    calls together. A call that kills its interpreter or exceeds a limit is not run again.
    """

    def run(arguments, state):
        before = state or ()
        ran = run_calls(before, str(arguments["code"]), limits)
        return (*before, *([ran.call] if ran.call else [])), ran.text

    schema = {"code": {"type": "string"}}
    description = "Runs Python code and shows what it prints; names stay from call to call."
    return Tool(name, description, schema, run, seconds=limits.wall_seconds + 30.0)


def _clock(text: str) -> list[list[int]]:
    """The record of a clock; empty if the program has written another text."""
    try:
        record = json.loads(text)
        entries = [[int(moment), int(readings)] for moment, readings in record[:_MOST_READINGS]]
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return []
    return entries
