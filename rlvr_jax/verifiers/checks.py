"""Checks: two named functions that extract the answer of a response and grade it.

    extract(response, **options) -> answer       a text; None: the response has none
    check(answer, gold, **options) -> grade       a number in [0, 1], None, or a `Grade`

Both are pure, importable as "module:name", and take and return JSON values. So a check runs in this
process, in a notebook, or in a worker that is killed at a time limit. A `WorkerPool` calls `run`;
`rlvr_jax.tasks.verifier` makes the `verify` of a task from a check.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvr_jax.verifiers.grade import Grade


@dataclass(frozen=True)
class Check:
    """Two functions by name, and their options.

    Fields:
      check: "module:name" of (answer, gold, **options) -> number, None or `Grade`. It is not
        called if there is no answer; the grade is then 0.
      extract: "module:name" of (response, **reading) -> answer or None; "": the whole response.
      options, reading: JSON values: further arguments of `check` and of `extract`.
    Raises:
      ValueError: a name is not "module:name".
    """

    check: str
    extract: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (self.check, *filter(None, [self.extract])):
            if not all(name.partition(":")):
                raise ValueError(f"Check: functions must be named 'module:name', got {name!r}")


def examine(check: Check, response: str, gold: Any) -> Grade:
    """The grade of a response by a check, in this process and without a time limit.

    Raises:
      ValueError: `check` returns a number outside [0, 1].
    """
    answer = _named(check.extract)(response, **check.reading) if check.extract else response
    if answer is None:
        return Grade(0.0, stage="no answer")
    found = _named(check.check)(answer, gold, **check.options)
    if isinstance(found, Grade):
        return found
    try:
        return Grade(None if found is None else float(found), answer=answer)
    except ValueError as error:
        raise ValueError(f"{check.check}: {error}") from None


def run(job: list[Any]) -> dict[str, Any]:
    """Runs a job of a worker: [fields of a check, response, gold] -> fields of the grade."""
    check, response, gold = job
    return vars(examine(Check(**check), response, gold))


@functools.cache
def _named(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)
