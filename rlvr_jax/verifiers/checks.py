"""Checks: the answer of a response and its grade, as two functions that have names.

    extract(response, **options) -> answer       a text; None: the response has none
    check(answer, gold, **options) -> finding     a number in [0, 1], None, or a `Finding`

Both are pure, importable as "module:name", and take and give JSON values, so that the same check
runs in this process, in a worker that is killed at a time limit, or in a notebook. A `WorkerPool`
calls `run`; `rlvr_jax.tasks.verifier` makes the `verify` of a task from a check.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """Result of a check of one response.

    Fields:
      value: grade in [0, 1]; None: ungraded, for a reason that the policy did not cause (a gold
        that cannot be graded, an engine that is not installed).
      answer: as it was read; None: the response has none.
      stage: where the check decided, a word or two such as "parse" or "exact"; for the samples.
      info: further numbers by name; NaN does not count.
    """

    value: float | None
    answer: str | None = None
    stage: str = ""
    info: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """Two functions by name, and their options.

    Fields:
      check: "module:name" of (answer, gold, **options) -> number, None or `Finding`. It is not
        called without an answer, which is worth 0.
      extract: "module:name" of (response, **reading) -> answer or None; "": the whole response.
      options, reading: JSON values for the two.
    Raises:
      ValueError: a name that is not "module:name".
    """

    check: str
    extract: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (self.check, *filter(None, [self.extract])):
            if not all(name.partition(":")):
                raise ValueError(f"Check: functions must be named 'module:name', got {name!r}")


def examine(check: Check, response: str, gold: Any) -> Finding:
    """Result of a check of a response, in this process and without a limit.

    Raises:
      ValueError: a number outside of [0, 1].
    """
    answer = _named(check.extract)(response, **check.reading) if check.extract else response
    if answer is None:
        return Finding(0.0, None, "no answer")
    found = _named(check.check)(answer, gold, **check.options)
    if not isinstance(found, Finding):
        found = Finding(None if found is None else float(found), answer)
    if found.value is not None and not 0 <= found.value <= 1:
        raise ValueError(f"{check.check}: a finding must be in [0, 1], got {found.value}")
    return found


def run(job: list[Any]) -> dict[str, Any]:
    """A job of a worker: [fields of a check, response, gold] -> fields of the finding."""
    check, response, gold = job
    return asdict(examine(Check(**check), response, gold))


@functools.cache
def _named(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)
