"""Parts that a command line names: what is no number and no text is found by its name."""

import ast
import difflib
import sys
from collections.abc import Callable
from typing import Any

from rlvr_jax import experience, objectives
from rlvr_jax.own import own


def named_part(owner: str, recipe: Callable, text: str) -> Any:
    """The object that a text names for a method, such as a reward or a divergence.

    `name` is looked for in the method's own file, then among the parts of `rlvr_jax.objectives`
    and `rlvr_jax.experience`; `module:name` is one's own. Behind a name arguments may stand,
    numbers and texts alone, which it is called with: `column(1)`, `random_reward(chance=0.1)`.

    Args:
      owner: whose hyperparameter it is, for errors.
      recipe: the method's function.
      text: what was given.
    """
    name, bracket, _ = text.partition("(")
    found = own(owner, name) if ":" in name else _known(owner, recipe, name)
    if not bracket:
        return found
    try:
        call = ast.parse(f"f({text.partition('(')[2]}", mode="eval").body
        if not isinstance(getattr(call, "func", None), ast.Name) or None in [
            pair.arg for pair in call.keywords
        ]:
            raise ValueError
        values = [ast.literal_eval(value) for value in call.args]
        named = {pair.arg: ast.literal_eval(pair.value) for pair in call.keywords}
    except (SyntaxError, ValueError):
        raise ValueError(
            f"{owner} must be a name, or one with numbers or texts in brackets behind it, got"
            f" {text!r}"
        ) from None
    try:
        return found(*values, **named)
    except TypeError as error:
        raise ValueError(
            f"{owner} must have arguments that {name} takes, got {text!r}: {error}"
        ) from None


def _known(owner: str, recipe: Callable, name: str) -> Any:
    places = (sys.modules[recipe.__module__], objectives, experience)
    for place in places:
        if not name.startswith("_") and hasattr(place, name):
            return getattr(place, name)
    names = {each for place in places for each in vars(place) if each[0].islower()}
    close = ", ".join(difflib.get_close_matches(name, sorted(names), n=3))
    raise ValueError(
        f"{owner} must be a name of its method's file, of rlvr_jax.objectives or of"
        " rlvr_jax.experience, or module:name of your own"
        f"{f'; closest: {close}' if close else ''}, got {name!r}"
    )
