"""Errors in a user's code as one sentence with the part, the file and the line."""

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PART = "part_that_called"

# Folders of Python, of installed packages, and of this package with its links.
_LIBRARIES = {
    Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
}
_PACKAGE = Path(__file__).parents[1]
_LIBRARIES |= {_PACKAGE, *((_PACKAGE / name).resolve() for name in ("experiments", "kernels"))}


def own_place(error: BaseException) -> traceback.FrameSummary | None:
    """The last line of a user's file that an error passed through; None without one."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f for f in reversed(frames) if not _of_library(f.filename)), None)


def where_raised(error: BaseException, place: traceback.FrameSummary) -> str:
    """An error, its first line, and its place."""
    return f"{_named(error)} ({_line(place)})"


@contextmanager
def names_own(what: str) -> Iterator[None]:
    """Stores the part that called the user's code in an error of that code, for `sentence`. `what`
    is the part and its function, such as "drop_half(): apply"."""
    try:
        yield
    except Exception as error:
        if own_place(error) is not None and not hasattr(error, _PART):
            setattr(error, _PART, what)
        raise


def sentence(error: BaseException) -> str:
    """An error as one sentence: the library's message, or the part, the error, and the line of the
    user's file."""
    cause = error.__cause__
    # An error may be raised again with the step that it ended.
    first = error if cause is None or type(cause) is not type(error) else cause
    place = own_place(first)
    if place is None or _in_our_words(first):
        return str(error)
    message = f"{_line(place)}: {_named(first)}"
    if part := getattr(first, _PART, None):
        message = f"{part} raised {where_raised(first, place)}"
    return message if first is error else str(error).replace(str(first), message, 1)


def _in_our_words(error: BaseException) -> bool:
    """Whether a line of this library raised an error with a message for users."""
    frames = traceback.extract_tb(error.__traceback__)
    worded = isinstance(error, ValueError | FloatingPointError | RuntimeError)
    return worded and bool(frames) and Path(frames[-1].filename).is_relative_to(_PACKAGE)


def _named(error: BaseException) -> str:
    reason = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {reason}"


def _line(place: traceback.FrameSummary) -> str:
    return f"{Path(place.filename).name}, line {place.lineno}, in {place.name}"


def _of_library(name: str) -> bool:
    return name.startswith("<frozen ") or any(map(Path(name).is_relative_to, _LIBRARIES))
