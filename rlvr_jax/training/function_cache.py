"""Compiled functions that the runs of a process share if their inputs are equal."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

_NUM_CACHED = 8
"""Compiled functions per function; a run has up to four sizes of batches."""

P = ParamSpec("P")
T = TypeVar("T")


def cached_results(make: Callable[P, T]) -> Callable[P, T]:
    """Caches the last few results of a function, by equal arguments.

    `jit` compiles anew for every new function, so two runs with equal arguments would compile the
    same programs. A function for parts that hold a custom function (`Part.lasting`) is made anew
    each time, as that may read something else by then.
    """
    cached = lru_cache(_NUM_CACHED)(make)

    @wraps(make)
    def wrapped(*arguments: P.args, **options: P.kwargs) -> T:
        parts = (*arguments, *options.values())
        lasting = all(getattr(part, "lasting", True) for part in parts)
        return (cached if lasting else make)(*arguments, **options)

    return wrapped
