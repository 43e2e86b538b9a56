"""Arguments of a function, checked against the annotated types of its parameters.

    check_each(Count, "sample", samples=samples)
    ValueError: sample: samples must be at least 1, got 0

A type carries its range (`rlvr_jax.ranges`), its choices and its description. This module does not
import JAX: parts, recipes, settings of tasks and of judges are checked by the same function.
"""

import contextlib
import difflib
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from rlvr_jax.ranges import Range, is_whole


@contextlib.contextmanager
def as_typed(option: str, *names: str) -> Iterator[None]:
    """Errors that begin with a Python name begin with the option that the user typed.

        with as_typed("--task", "load: name", "load"):
            tasks.load(name)

    Args:
      option: beginning of the new message.
      names: beginnings that are replaced; the first one that fits. After an empty one nothing is
        replaced, and the option comes first.
    """
    try:
        yield
    except ValueError as error:
        message = str(error)
        for name in filter(message.startswith, names):
            rest = message.removeprefix(name)
            error.args = (option + rest if name else f"{option}: {rest}",)
            break
        raise


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Checks arguments against the annotations of a function.

    Raises:
      ValueError: an argument of another type or out of its range.
    """
    for name, value in arguments.items():
        checked(function.__name__, name, value, hints_of(function).get(name, Any))


def check_each(hint: Any, function: str, /, **values: Any) -> None:
    """Checks values of a function that is not a part against one annotated type."""
    for name, value in values.items():
        checked(function, name, value, hint)


def described(function: Callable[..., Any]) -> dict[str, str]:
    """Description and range of a function's parameters, from their types, by name."""
    found = {name: words_of(hint) for name, hint in hints_of(function).items()}
    return {name: words for name, words in found.items() if words}


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """The texts of the `Args` of a docstring, each as one line, by name."""
    doc = inspect.getdoc(function) or ""
    section = re.search(r"^Args:\n(.*?)(?=^\w+:|\Z)", doc, re.DOTALL | re.MULTILINE)
    entry = r"^  (\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*(?:\n    .*)*)"
    found = re.findall(entry, section[1] if section else "", re.MULTILINE)
    return {
        name.strip("* "): " ".join(text.split())
        for names, text in found
        for name in names.split(",")
    }


def explained(function: Callable[..., Any]) -> dict[str, str]:
    """The text of each argument from `Args`, with the range of its type; else as `described`."""
    found = described(function)
    for name, text in documented(function).items():
        hint = hints_of(function).get(name)
        bounds = ", ".join(str(one) for one in annotations_of(hint) if isinstance(one, Range))
        text = text.rstrip(".")
        if bounds:
            text = f"{text}. {bounds.capitalize()}" if ". " in text else f"{text}, {bounds}"
        found[name] = text
    return found


def words_of(hint: Any) -> str:
    """Description and range of a type; "" without both."""
    extras = annotations_of(hint)
    words = [one for one in extras if isinstance(one, str)]
    return ", ".join([*words, *(str(one) for one in extras if isinstance(one, Range))])


def annotations_of(hint: Any) -> tuple[Any, ...]:
    """The annotations of a type, and of the members of a union: ranges, descriptions, others."""
    if get_origin(hint) is Annotated:
        return get_args(hint)[1:]
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(extra for member in get_args(hint) for extra in annotations_of(member))
    return ()


def types_of(hint: Any) -> tuple[Any, ...]:
    """The type, or the members of a union, without None and without annotations."""
    if get_origin(hint) is Annotated:
        return types_of(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(one for member in get_args(hint) for one in types_of(member))
    return () if hint is types.NoneType else (hint,)


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The allowed values: those of a Literal, or a tuple in `Annotated`; empty for any."""
    literals = [one for one in types_of(hint) if get_origin(one) is Literal]
    found = [one for one in annotations_of(hint) if isinstance(one, tuple)]
    return next(iter([*found, *map(get_args, literals)]), ())


def bound_arguments(
    function: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]
) -> inspect.BoundArguments:
    """The arguments of a call, defaults and all, as values of the annotated types.

    Raises:
      TypeError: arguments that the function does not take.
      ValueError: an argument of another type or out of its range.
    """
    signature = signature_of(function)
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        names = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
        raise TypeError(
            f"{function.__name__}: {error}; it takes {inspect.Signature(names)}"
        ) from None
    bound.apply_defaults()
    hints = hints_of(function)
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if name not in hints or kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            value = tuple(checked(function.__name__, name, one, hints[name]) for one in value)
        else:
            value = checked(function.__name__, name, value, hints[name])
        bound.arguments[name] = value
    return bound


@functools.cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function."""
    return inspect.signature(function)


@functools.cache
def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters and of its result, with their annotations."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # names that are imported for type checkers only
        return {}


def checked(function: str, name: str, value: Any, hint: Any) -> Any:
    """The value as one of an annotated type: an integer as a float, a list as a tuple.

    A class with a method `as_argument` checks its values itself.

    Raises:
      ValueError: a value of another type, or out of the range of the annotation.
    """
    origin = get_origin(hint)
    if origin is Annotated:
        base, *extras = get_args(hint)
        given, value = value, checked(function, name, value, base)
        for extra in extras:
            if isinstance(extra, Range) and _is_number(value) and value not in extra:
                wanted = "finite" if extra.finite and not np.isfinite(value) else extra
                fix = f"; {extra.fix}" if extra.fix else ""
                raise ValueError(f"{function}: {name} must be {wanted}, got {given}{fix}")
            if isinstance(extra, tuple):
                _of_choices(function, name, value, extra)
        return value
    if origin in (Union, types.UnionType):
        return _of_union(function, name, value, get_args(hint))
    if origin is Callable:
        if callable(value):
            return value
        raise ValueError(f"{function}: {name} must be a function, got {value!r}")
    if origin is Literal:
        return _of_choices(function, name, value, get_args(hint))
    if hasattr(hint, "as_argument"):
        return hint.as_argument(function, name, value)
    if type(value) in (list, tuple):
        kinds = get_args(hint)
        if origin in (Sequence, Iterable) or (origin is tuple and kinds[1:] == (Ellipsis,)):
            return tuple(checked(function, f"each of {name}", one, kinds[0]) for one in value)
        return tuple(value)
    if origin is Mapping and isinstance(value, Mapping):
        kind = get_args(hint)[1]
        return {k: checked(function, f"{k} of {name}", one, kind) for k, one in value.items()}
    listed = isinstance(value, tuple if origin is tuple else Sequence | np.ndarray)
    if origin in (Sequence, tuple) and not (listed or _is_traced(value)):
        got = getattr(value, "__name__", repr(value))
        raise ValueError(f"{function}: {name} must be a list or tuple, got {got}")
    if _is_traced(value):
        return value
    if hint is float:
        return _as_float(function, name, value)
    if hint is int and not is_whole(value):
        raise ValueError(f"{function}: {name} must be a whole number, got {value!r}")
    if hint is str and not isinstance(value, str):
        raise ValueError(f"{function}: {name} must be a text, got {value!r}")
    if hint is bool and not isinstance(value, bool | np.bool_):
        raise ValueError(f"{function}: {name} must be True or False, got {value!r}")
    return value


def _of_choices(function, name, value, choices):
    if value in choices:
        return value
    wanted = ", ".join(map(repr, choices))
    close = difflib.get_close_matches(str(value), map(str, choices), n=1)
    hint = f"; closest: {close[0]}" if close else ""
    raise ValueError(f"{function}: {name} must be one of {wanted}, got {value!r}{hint}")


def _of_union(function, name, value, kinds):
    if value is None and types.NoneType in kinds:
        return value
    kinds = [kind for kind in kinds if kind is not types.NoneType]
    failures = []
    for kind in kinds:
        try:
            return checked(function, name, value, kind)
        except ValueError as error:
            failures.append(error)
    raise failures[0]


def _is_traced(value: Any) -> bool:
    """Whether a value is known only when a compiled function of JAX runs."""
    return "jax" in sys.modules and isinstance(value, sys.modules["jax"].core.Tracer)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not _is_traced(value)


def _as_float(function, name, value):
    if (
        isinstance(value, bool | np.bool_ | str)
        or np.ndim(value)
        or not hasattr(value, "__float__")
    ):
        raise ValueError(f"{function}: {name} must be a number, got {value!r}")
    return float(value)
