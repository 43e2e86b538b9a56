"""Methods: one file per published method, each a composition of parts with the paper's defaults.

The folder is the registry: a file `x.py` holds a function `x(**hyperparameters) -> Recipe` and its
card `METHOD`. Only the file that is asked for is loaded. `python -m rlvr_jax.methods` prints a
table, and what is published and has no method (`_untrained`). A method of one's own goes by
`module:function`, wherever a name is asked for.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

from rlvr_jax.methods._untrained import UNTRAINED
from rlvr_jax.own import own_function

if TYPE_CHECKING:
    from rlvr_jax.types import Method, Recipe

__all__ = ["method", "names", "recipe"]


def names() -> list[str]:
    """The names of all methods, sorted."""
    files = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in files if not name.startswith("_"))


def method(name: str) -> Method:
    """The card of a method.

    Args:
      name: of a file of this room, or "module:function" for a function of one's own that returns a
        `Recipe`; the current directory is searched first.
    Raises:
      ValueError: no method has this name; for papers whose parts are functions it says which.
    """
    if ":" in name:
        return _own_method(name)
    if name in UNTRAINED:
        _, here, why = UNTRAINED[name]
        raise ValueError(
            f"method: name must be a method, got {name!r}: {why}. It is here as {here}"
        )
    if name not in names():
        # Of some two hundred names a reader finds none in a list.
        close = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
        hint = f"closest: {', '.join(close)}; " if close else ""
        raise ValueError(
            f"method: name must be a method ({hint}all: python -m rlvr_jax.methods), got {name!r}"
        )
    return importlib.import_module(f"{__name__}.{name}").METHOD


def recipe(name: str, **hyperparameters: Any) -> Recipe:
    """The recipe of a method, with its published defaults except for the given hyperparameters.

    Recipes of one method with equal hyperparameters are equal. A run of `experiments.train` starts
    a few methods with other hyperparameters (`rlvr_jax.runs.preset`) and says which.

    Raises:
      ValueError: no method has this name, or the method has no such hyperparameter.
    """
    factory = method(name).recipe
    known = list(inspect.signature(factory).parameters)
    for hyperparameter in hyperparameters:
        if hyperparameter not in known:
            raise ValueError(
                f"recipe: hyperparameter must be one of {name}'s"
                f" ({_closest(hyperparameter, known)}), got {hyperparameter!r}"
            )
    from rlvr_jax.types import Recipe

    made = factory(**hyperparameters)
    if not isinstance(made, Recipe):
        raise ValueError(
            f"recipe: method {name!r} must return a Recipe (of an objective: Recipe(objective(…))),"
            f" got {type(made).__name__}"
        )
    return made


def _own_method(name: str) -> Method:
    from rlvr_jax.types import Method

    factory = own_function("method", name)
    title = (inspect.getdoc(factory) or name.rpartition(":")[2]).partition("\n")[0]
    return Method(factory, title, "", evidence="own")


def _closest(word, known):
    if not known:
        return "it has none"
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    return f"closest: {', '.join(close)}" if close else f"known: {', '.join(known)}"
