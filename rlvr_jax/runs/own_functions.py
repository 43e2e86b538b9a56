"""Functions of a user's own, named on a command line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["own_function"]


def own_function(option: str, name: str, given: str = "") -> Callable[..., Any]:
    """The function of "module:function"; the current directory is searched first.

    Args:
      option: that names it, for errors.
      given: the whole of what was given, for errors; empty: the name.
    Raises:
      ValueError: another form, no such module, or no such function in it.
    """
    module, colon, function = name.partition(":")
    given = given or name
    if not (module and colon and function):
        raise ValueError(f"{option} must be module:function, got {given!r}")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"{option}: no module {module!r} can be imported, got {given!r}") from None
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise ValueError(
            f"{option}: module {module!r} must have a function {function!r}, got {given!r}"
        )
    return found
