"""Texts of a command line as arguments of a method, a stage, or another function."""

import ast
import difflib
import inspect
import sys
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rlvr_jax import experience, methods, objectives
from rlvr_jax.objectives import Aggregation
from rlvr_jax.own import own

AGGREGATIONS = {
    "token_mean": objectives.token_mean,
    "rollout_mean_token_mean": objectives.rollout_mean_token_mean,
    "rollout_mean_token_sum": objectives.rollout_mean_token_sum,
}
"""The aggregations that a command line can name: those without arguments."""


def parse_hyperparameters(method: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Reads name=value pairs by the annotations of the method, or by the types of its defaults.

    Raises:
      ValueError: unknown method or hyperparameter (closest names), or a value of another type.
    """
    recipe = methods.method(method).recipe
    return read_arguments(f"--hyperparameters of {method}", recipe, pairs)


def read_arguments(owner: str, function: Callable, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Reads name=value pairs by the annotations of a function, or by the types of its defaults.

    A value of another type is the name of an object, see `named_part`.

    Args:
      owner: the flag and the object that has the arguments; an error begins with it.
    """
    parameters = inspect.signature(function).parameters
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"{owner} must be name=value, got {pair!r}")
        if name not in parameters:
            close = ", ".join(difflib.get_close_matches(name, parameters, n=3))
            hint = f"; closest: {close}" if close else ""
            known = ", ".join(parameters) or "none"
            raise ValueError(f"{owner} must be among {known}, got {name!r}{hint}")
        kinds = _kinds(function, parameters[name])
        if kinds:
            values[name] = _read(owner, text, parameters[name], kinds)
        else:
            values[name] = named_part(f"{owner}: {name}", function, text)
    return values


_READABLE = (Aggregation, Sequence[int], Sequence[float], Sequence[str], bool, int, float, str)


def _kinds(recipe: Callable, parameter: inspect.Parameter) -> list[type]:
    """The types that a text can be read as for a parameter, None last."""
    try:
        hint = get_type_hints(recipe).get(parameter.name, type(parameter.default))
    except (NameError, AttributeError, TypeError):  # names for type checkers only; no function
        hint = type(parameter.default)
    wanted = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    wanted = [type(get_args(one)[0]) if get_origin(one) is Literal else one for one in wanted]
    kinds = [kind for kind in _READABLE if kind in wanted]
    return [*kinds, NoneType] if kinds and NoneType in wanted else kinds


def _read(owner: str, text: str, parameter: inspect.Parameter, kinds: list[type]) -> Any:
    name, default = parameter.name, parameter.default
    if Aggregation in kinds:
        if text in AGGREGATIONS:
            return AGGREGATIONS[text]()
        raise ValueError(f"{owner}: {name} must be one of {', '.join(AGGREGATIONS)}, got {text!r}")
    if NoneType in kinds and text == "None":
        return None
    for many, kind, wanted in (
        (Sequence[int], int, "whole numbers"),
        (Sequence[float], float, "numbers"),
        (Sequence[str], str, "texts"),
    ):
        if many not in kinds:
            continue
        try:
            return tuple(kind(number) for number in text.split(","))
        except ValueError:
            raise ValueError(
                f"{owner}: {name} must be {wanted} with commas between them, got {text!r}"
            ) from None
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float, str):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                pass
    wanted = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
    like = "" if default is parameter.empty else f" like {default!r}"
    raise ValueError(f"{owner}: {name} must be {wanted}{like}, got {text!r}")


def named_part(owner: str, recipe: Callable, text: str) -> Any:
    """The object that a text names for a method, such as a reward or a divergence.

    `name` is searched in the method's file, then among the parts of `rlvr_jax.objectives` and
    `rlvr_jax.experience`. `module:name` is a custom part. A name may have arguments, only numbers
    and texts: `column(1)`, `random_reward(chance=0.1)`.

    Args:
      owner: beginning of the sentence of an error.
    """
    name, bracket, _ = text.partition("(")
    found = own(owner, name) if ":" in name else _object_of(owner, recipe, name)
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
            f"{owner} must be a name, or a name followed by numbers or texts in brackets, got"
            f" {text!r}"
        ) from None
    try:
        return found(*values, **named)
    except TypeError as error:
        raise ValueError(
            f"{owner} must have arguments that {name} takes, got {text!r}: {error}"
        ) from None


def _object_of(owner: str, recipe: Callable, name: str) -> Any:
    places = (sys.modules[recipe.__module__], objectives, experience)
    for place in places:
        if not name.startswith("_") and hasattr(place, name):
            return getattr(place, name)
    names = {each for place in places for each in vars(place) if each[0].islower()}
    close = ", ".join(difflib.get_close_matches(name, sorted(names), n=3))
    raise ValueError(
        f"{owner} must be a name of its method's file, of rlvr_jax.objectives or of"
        " rlvr_jax.experience, or a custom module:name"
        f"{f'; closest: {close}' if close else ''}, got {name!r}"
    )
