"""Engines that read model text run in the sandbox; one of its servers serves this process.

A check that uses them runs in this process, not in a `WorkerPool`, whose workers may start nothing:
what is hostile has the sandbox's limits. Where the machine has nothing to keep programs in, nothing
runs and there is no verdict.
"""

import functools
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlvr_jax.sandbox import Limits, Outcome, Sandbox

_PATIENCE = 8


@functools.cache
def _sandbox() -> Sandbox:
    return Sandbox(workers=os.cpu_count() or 1)


def in_sandbox(run: Callable[[Sandbox], Outcome]) -> Outcome | None:
    """The outcome of a program; None if none could be had, which says nothing about the program.

    Engines compute and do not wait. One that the wall limit of `limits` ended was not given its
    CPU time, as on a machine with too much to do; that is no outcome either.
    """
    try:
        outcome = run(_sandbox())
    except RuntimeError:  # nothing here keeps a program in
        return None
    return None if outcome.reason in ("lost", "wall") else outcome


def limits(seconds: float, **others: Any) -> Limits:
    """Limits of an engine: CPU time, and of wall time what a busy machine makes of it."""
    return Limits(cpu_seconds=seconds, wall_seconds=_PATIENCE * seconds, **others)


def package_folder(name: str) -> Path | None:
    """Where an installed package lies, found without running it; None if it is not there."""
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None
