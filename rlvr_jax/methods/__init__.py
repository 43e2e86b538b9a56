"""Methods: one file per published paper, in a folder per theme.

A file `<theme>/<name>.py` is read from the top. First is the equation, then the parts that only
this paper uses, the function `<name>(**hyperparameters) -> Recipe`, and its card `METHOD`. Names
are unique, so a name identifies its method. A file is imported when its method is requested.
`python -m rlvr_jax.methods` prints the table, with the papers that have no method (`_untrained`). A
custom method has the name `module:function`, wherever a name is expected. If its module has a card
`METHOD`, this card is used.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import pkgutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvr_jax.methods._untrained import UNTRAINED
from rlvr_jax.own import own_function

if TYPE_CHECKING:
    from rlvr_jax.types import Method, Recipe

__all__ = ["method", "names", "recipe", "themes"]


@functools.cache
def themes() -> dict[str, str]:
    """The theme of each method, by name, sorted by name.

    Raises:
      ValueError: two themes have a file of one name.
    """
    found: dict[str, str] = {}
    for theme in pkgutil.iter_modules(__path__):
        if not theme.ispkg:
            continue
        for file in pkgutil.iter_modules([str(Path(__path__[0]) / theme.name)]):
            if file.name in found:
                raise ValueError(
                    f"methods: names must be unique, got {found[file.name]}/{file.name}.py and"
                    f" {theme.name}/{file.name}.py; rename one of them"
                )
            found[file.name] = theme.name
    return dict(sorted(found.items()))


def names() -> list[str]:
    """The names of all methods, sorted."""
    return list(themes())


def method(name: str) -> Method:
    """The card of a method, by its name: recipe, paper, and the laws that it breaks.

    Args:
      name: name of a file of this subpackage, or "module:function" for a custom function that
        returns a `Recipe`; the current directory is searched first.
    Raises:
      ValueError: no method has this name, or its file has no card.
    """
    if ":" in name:
        return _own_method(name)
    if name in UNTRAINED:
        _, here, why = UNTRAINED[name]
        raise ValueError(
            f"method: name must be a method, got {name!r}: {why}. It is here as {here}"
        )
    if name not in themes():
        # A list of some two hundred names does not help.
        close = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
        hint = f"closest: {', '.join(close)}; " if close else ""
        raise ValueError(
            f"method: name must be a method ({hint}all: python -m rlvr_jax.methods), got {name!r}"
        )
    file = importlib.import_module(f"{__name__}.{themes()[name]}.{name}")
    if not hasattr(file, "METHOD"):
        raise ValueError(
            f"method: {themes()[name]}/{name}.py must have its card, METHOD = Method({name}, …),"
            " got none"
        )
    return file.METHOD


def recipe(name: str, **hyperparameters: Any) -> Recipe:
    """The recipe of a method, with its published defaults except for the given hyperparameters.

    Examples:
      >>> from rlvr_jax import methods
      >>> sorted(methods.recipe("clip_cov", fraction=0.01).objective.reads)
      ['batch_statistics', 'logp']

    Recipes of one method with equal hyperparameters are equal. `python -m rlvr_jax train` starts a
    few methods with other hyperparameters (`rlvr_jax.runs.preset`) and prints them.

    Args:
      name: as for `method`.
      **hyperparameters: arguments of the method's function, such as `fraction=0.01`.
    Raises:
      ValueError: no method has this name, the method has no such hyperparameter, or a value is out
        of its range.
    """
    factory = method(name).recipe
    known = list(inspect.signature(factory).parameters)
    for hyperparameter in hyperparameters:
        if hyperparameter not in known:
            raise ValueError(
                f"recipe: hyperparameter must be one of {name}'s"
                f" ({_closest(hyperparameter, known)}), got {hyperparameter!r}"
            )
    from rlvr_jax.arguments import check_arguments
    from rlvr_jax.types import Recipe

    check_arguments(factory, hyperparameters)
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
    card = getattr(inspect.getmodule(factory), "METHOD", None)
    if isinstance(card, Method) and card.recipe is factory:
        return replace(card, evidence="own")
    title = (inspect.getdoc(factory) or name.rpartition(":")[2]).partition("\n")[0]
    return Method(factory, title, "", evidence="own")


def _closest(word, known):
    if not known:
        return "it has none"
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    return f"closest: {', '.join(close)}" if close else f"known: {', '.join(known)}"
