"""Values that cross as copies, after the built-in ones: of the standard library, and instances.

Each kind takes its values apart and puts them together. A module is imported only if one of its
values crosses. This file runs inside the sandbox and needs only the standard library.
"""

import collections
import functools
import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class _Kind(NamedTuple):
    """A class of the standard library.

    Fields:
      module: the module of the class.
      apart: (value) -> the built-in value that it is made of.
      together: (class, that value) -> the value.
    """

    module: str
    apart: Callable[[Any], Any]
    together: Callable[[Any, Any], Any] = lambda kind, part: kind(part)


def _fields(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda value: tuple(getattr(value, name) for name in names)


def _of_parts(kind: Any, parts: Any) -> Any:
    return kind(*parts)


def _of_moment(kind: Any, parts: Any) -> Any:
    return kind(*parts[:-1], fold=parts[-1])


_DAY = ("year", "month", "day")
_HOUR = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
_DEQUE = collections.deque
_KINDS = {
    "deque": _Kind("collections", lambda v: ([*_DEQUE.__iter__(v)], v.maxlen), _of_parts),
    "Counter": _Kind("collections", lambda v: dict(dict.items(v))),
    "OrderedDict": _Kind("collections", lambda v: dict(dict.items(v))),
    "Fraction": _Kind("fractions", _fields("numerator", "denominator"), _of_parts),
    "Decimal": _Kind("decimal", str),
    "timedelta": _Kind("datetime", _fields("days", "seconds", "microseconds"), _of_parts),
    "timezone": _Kind("datetime", lambda v: v.utcoffset(None)),
    "time": _Kind("datetime", _fields(*_HOUR), _of_moment),
    "datetime": _Kind("datetime", _fields(*_DAY, *_HOUR), _of_moment),
    "date": _Kind("datetime", _fields(*_DAY), _of_parts),
    "array": _Kind("array", lambda v: (v.typecode, v.tolist()), _of_parts),
    "slice": _Kind("builtins", _fields("start", "stop", "step"), _of_parts),
    "UUID": _Kind("uuid", str),
}
_NAMED = "namedtuple"
TAGS = (*_KINDS, _NAMED)
"""Names of the kinds."""


def taken_apart(value: Any) -> tuple[str, Any] | None:
    """The kind of a value and its parts; None: it is of no kind."""
    for kind in type(value).__mro__:
        found = _KINDS.get(kind.__name__)
        if found and found.module == kind.__module__:
            return kind.__name__, found.apart(value)
    names = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and isinstance(names, tuple):
        return _NAMED, (type(value).__name__, names, tuple(tuple.__iter__(value)))
    return None


def put_together(tag: str, content: Any) -> Any:
    """The value of a kind; raises Lookup-, Type-, Value- or ArithmeticError if there is none."""
    if tag == _NAMED:
        name, fields, parts = content
        return _named(name, fields)(*parts)
    kind = _KINDS[tag]
    return kind.together(getattr(importlib.import_module(kind.module), tag), content)


@functools.lru_cache(maxsize=64)
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


def state_of(value: Any) -> dict[str, Any]:
    """The attributes of an instance, also those in slots."""
    found = object.__getstate__(value)
    parts = found if isinstance(found, tuple) else (found,)
    return {name: part for names in parts if names for name, part in names.items()}


def set_state(value: Any, state: Mapping[str, Any]) -> None:
    """Gives an instance its attributes; raises ValueError for the name of a method or property."""
    for name, part in state.items():
        for kind in type(value).__mro__:
            own = vars(kind).get(name)
            computed = callable(own) or hasattr(type(own), "__get__")
            if computed and not isinstance(own, types.MemberDescriptorType):
                raise ValueError(f"{name} must be no attribute of {kind.__name__} itself")
        object.__setattr__(value, name, part)
