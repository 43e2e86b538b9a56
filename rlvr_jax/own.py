"""Code of users: what they name as module:function, and which line of their files raises."""

from __future__ import annotations

import difflib
import importlib
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["OwnError", "names_own", "own", "own_function", "own_place"]
__all__ += ["raised_at", "raised_here", "where_raised"]

# Python's own, what is installed, and this package with the folders that it links to.
_LIBRARIES = {
    Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
}
_PACKAGE = Path(__file__).parent
_LIBRARIES |= {_PACKAGE, *((_PACKAGE / name).resolve() for name in ("experiments", "kernels"))}


class OwnError(ValueError):
    """Code of the user raised while a part of a run called it."""


def own(caller: str, name: str, unknown: Callable[[str], str] | None = None) -> Any:
    """The object that a module of the user has under a name.

    Args:
      caller: who asks; begins the sentence of an error.
      name: "module:attribute"; the current directory is searched first.
      unknown: makes the sentence where there is no such module, of the reason.
    Raises:
      ValueError: there is no such module, or it has nothing of that name. What the module itself
        cannot import is its own error.
    """
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        reason = f"no module {module!r} can be imported"
        told = unknown(reason) if unknown else f"{caller}: {reason}, got {name!r}"
        raise ValueError(told) from None
    finally:
        sys.path.remove(here)
    if not hasattr(found, attribute):
        close = difflib.get_close_matches(attribute, dir(found), n=3)
        hint = f"; closest: {', '.join(close)}" if close else ""
        raise ValueError(
            f"{caller}: module {module!r} must have {attribute!r}, which it has not{hint}"
        )
    return getattr(found, attribute)


def own_function(caller: str, name: str, given: str = "") -> Callable[..., Any]:
    """The function of "module:function"; see `own`.

    Args:
      given: the whole of what was given, for errors; empty: the name.
    Raises:
      ValueError: as `own`; another form, or what is no function.
    """
    module, colon, function = name.partition(":")
    given = given or name
    if not (module and colon and function):
        raise ValueError(f"{caller} must be module:function, got {given!r}")
    found = own(caller, name, lambda reason: f"{caller}: {reason}, got {given!r}")
    if not callable(found):
        raise ValueError(f"{caller}: {given!r} must be a function, got {type(found).__name__}")
    return found


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
