"""Objects that users name as module:function, in every setting that takes a name."""

import difflib
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def own(caller: str, name: str, unknown: Callable[[str], str] | None = None) -> Any:
    """The object that a module of the user has under a name.

    Args:
      caller: the setting that has the name; begins the sentence of an error.
      name: "module:attribute"; the current directory is searched first.
      unknown: (reason) -> the sentence of the error where there is no such module.
    Raises:
      ValueError: there is no such module, or it lacks the name. Failed imports inside the module
        raise their own errors.
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
        message = unknown(reason) if unknown else f"{caller}: {reason}, got {name!r}"
        raise ValueError(message) from None
    finally:
        sys.path.remove(here)
    if not hasattr(found, attribute):
        close = difflib.get_close_matches(attribute, dir(found), n=3)
        hint = f"; closest: {', '.join(close)}" if close else ""
        raise ValueError(
            f"{caller}: module {module!r} must have {attribute!r}, got no such name{hint}"
        )
    return getattr(found, attribute)


def own_function(caller: str, name: str, given: str = "") -> Callable[..., Any]:
    """The function of "module:function"; see `own`.

    Args:
      given: the complete setting, for errors; empty: the name.
    Raises:
      ValueError: as `own`; another form, or an object that is not a function.
    """
    module, colon, function = name.partition(":")
    given = given or name
    if not (module and colon and function):
        raise ValueError(f"{caller} must be module:function, got {given!r}")
    found = own(caller, name, lambda reason: f"{caller}: {reason}, got {given!r}")
    if not callable(found):
        raise ValueError(f"{caller}: {given!r} must be a function, got {type(found).__name__}")
    return found
