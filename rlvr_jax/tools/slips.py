"""What a user's own code raises, told in one sentence with the part, the file and the line."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["OwnError", "names_own", "own_place", "raised_at", "raised_here", "where_raised"]

# Python's own, what is installed, and this package with the folders that it links to.
_LIBRARIES = {
    Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
}
_PACKAGE = Path(__file__).parents[1]
_LIBRARIES |= {_PACKAGE, *((_PACKAGE / name).resolve() for name in ("experiments", "kernels"))}


class OwnError(ValueError):
    """Code of the user raised while a part of a run called it."""


def own_place(error: BaseException) -> traceback.FrameSummary | None:
    """The last line of a file of the user's that an error went through; None without any."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f for f in reversed(frames) if not _of_library(f.filename)), None)


def raised_here(error: BaseException) -> bool:
    """Whether a line of this library raised an error, in its own words."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).is_relative_to(_PACKAGE)


def where_raised(error: BaseException, place: traceback.FrameSummary) -> str:
    """What was raised, its first line, and where."""
    return f"{_named(error)} ({_line(place)})"


def raised_at(error: BaseException, place: traceback.FrameSummary) -> str:
    """Where it was raised, and what, with its first line."""
    return f"{_line(place)}: {_named(error)}"


def _named(error: BaseException) -> str:
    reason = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {reason}"


def _line(place: traceback.FrameSummary) -> str:
    return f"{Path(place.filename).name}, line {place.lineno}, in {place.name}"


@contextmanager
def names_own(what: str) -> Iterator[None]:
    """Turns what the user's code raises into one sentence with the part and the line of the file.

    What the library itself raises, and what runs out of memory or time, passes as it is.

    Args:
      what: the part and what of it is called, such as "drop_half(): apply".
    Raises:
      OwnError: of an error that went through a file of the user's.
    """
    try:
        yield
    except (MemoryError, TimeoutError):
        raise
    except Exception as error:
        place = own_place(error)
        told = isinstance(error, ValueError) and type(error).__module__.startswith("rlvr_jax.")
        if told or place is None or "RESOURCE_EXHAUSTED" in str(error):
            raise
        raise OwnError(f"{what} raised {where_raised(error, place)}") from error


def _of_library(name: str) -> bool:
    frozen = name.startswith("<frozen ")
    return frozen or any(Path(name).is_relative_to(folder) for folder in _LIBRARIES)
