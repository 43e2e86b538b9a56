"""Runs engines that read model text in the sandbox; one of its servers serves this process.

A check that uses them runs in this process, not in a `WorkerPool`, whose workers may not start
processes: the sandbox limits hostile texts. Without a sandbox, answers are ungraded.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import Limits, Outcome, shared

_PATIENCE = 8  # wall seconds per second of CPU time, on a busy machine


def run_engine(
    source: str,
    seconds: float,
    *,
    stdin: str = "",
    argv: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    **limits: Any,
) -> Outcome | None:
    """The outcome of a program; None if there is none and the program is not the cause.

    Engines compute and do not wait. If the wall limit ends one, it did not get its CPU time, as on
    a busy machine; this is not an outcome.

    Args:
      source, stdin, argv, files: as in `Sandbox.run`.
      seconds: CPU time (seconds).
      limits: further fields of `Limits`.
    """
    bounds = Limits(cpu_seconds=seconds, wall_seconds=_PATIENCE * seconds, **limits)
    try:
        outcome = shared().run(source, stdin, argv, files, bounds)
    except RuntimeError:  # this machine has no sandbox
        return None
    return None if outcome.reason in ("lost", "wall") else outcome


def package_folder(name: str) -> Path | None:
    """The folder of an installed package, found without running it; None if it is not there."""
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None
