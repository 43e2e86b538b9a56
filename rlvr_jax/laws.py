"""Laws: properties that every objective, experience and task has, and functions that check them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any


class Broken(Exception):
    """A law does not hold; the text is the reason."""


Laws = Mapping[str, Callable[[Any], None]]
"""Functions of a case by name. A law raises `Broken`; the start of its docstring states it."""


def laws_of(*laws: Callable[[Any], None]) -> Laws:
    """Laws by the names of their functions."""
    return {law.__name__: law for law in laws}


def require(holds: bool, reason: str) -> None:
    """Raises `Broken` with the reason unless the condition holds."""
    if not holds:
        raise Broken(reason)


def hold(laws: Laws, case: Any) -> dict[str, str]:
    """The result of each law for a case: "" if it holds, else the reason."""
    found = {}
    for name, law in laws.items():
        try:
            law(case)
            found[name] = ""
        except Broken as reason:
            found[name] = str(reason)
        except Exception as error:  # custom code may raise anything
            found[name] = f"{type(error).__name__}: {error}"
    return found


def statement(law: Callable[[Any], None]) -> str:
    """The sentence that states a law."""
    return " ".join((inspect.getdoc(law) or "").partition("\n\n")[0].split())
