"""When two things that were made are alike: made by the same code, of the same values.

A part of a loss is functions that a factory made; two calls of it with the same arguments make
other functions of the same code that close over the same values. That is what is compared here, so
parts, objectives and recipes are equal where their factories and arguments are, can stand in sets,
and are one static argument of a compiled function.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Hashable, Mapping, Set
from importlib import metadata
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

__all__ = ["Alike"]

_LIBRARY = "rlvr_jax"
_LASTING = {_LIBRARY, "jax", "jaxlib", "numpy", "optax", "builtins", "functools", "operator"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class Alike:
    """A frozen dataclass (with eq=False) whose objects are equal if they were made alike."""

    @functools.cached_property
    def _made(self) -> Hashable:
        return _Key(_made_of(self, {}))

    @functools.cached_property
    def lasting(self) -> bool:
        """Whether nothing of it can change without a trace: it is made of this library's code.

        What is compiled for it may be used for all that are alike. A function of one's own may read
        a module that is loaded again, or an object that is changed where it lies.
        """
        seen: dict[int, tuple[int, Any]] = {}
        if not _is_lasting(_made_of(self, seen)):
            return False
        values = (value for _, value in seen.values())
        return all(_stays(v.__module__) for v in values if isinstance(v, types.FunctionType))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Alike) and self._made == other._made

    def __hash__(self) -> int:
        return hash(self._made)


class _Key:
    """A nested tuple that is hashed once."""

    def __init__(self, value: Hashable):
        self.value, self.hash = value, hash(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.hash == other.hash and self.value == other.value

    def __hash__(self) -> int:
        return self.hash


def _made_of(value: Any, seen: dict[int, tuple[int, Any]]) -> Hashable:
    """What a value is made of, as nested tuples.

    Args:
      seen: number of every object met so far, by its identity, and the object, so that no identity
        is used twice. What comes again is its number: functions may close over themselves.
    """
    if isinstance(value, _PLAIN):
        # 1, 1.0 and True are equal and are not the same argument; NaN equals itself as a text.
        return type(value), repr(value) if isinstance(value, float | complex) else value
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | np.ufunc):
        return value
    if id(value) in seen:
        return "again", seen[id(value)][0]
    seen[id(value)] = len(seen), value

    def of(part):
        return _made_of(part, seen)

    if isinstance(value, types.FunctionType):
        cells = tuple(of(_content(cell)) for cell in value.__closure__ or ())
        rest = value.__defaults__, value.__kwdefaults__, _globals_of(value)
        return value.__module__, value.__qualname__, value.__code__, cells, *map(of, rest)
    if isinstance(value, types.MethodType):
        return of(value.__func__), of(value.__self__)
    if isinstance(value, functools.partial):
        return functools.partial, of(value.func), of(value.args), of(value.keywords)
    if isinstance(value, tuple | list):
        return type(value), tuple(map(of, value))
    if isinstance(value, Mapping):
        return type(value), tuple((of(key), of(item)) for key, item in value.items())
    if isinstance(value, Set):
        return type(value), tuple(map(of, sorted(value, key=repr)))
    if isinstance(value, Tracer):
        return _Same(value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(value)
        return type(value), array.dtype.str, array.shape, array.tobytes()
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return type(value), tuple(of(getattr(value, field.name)) for field in fields)
    wrapped = getattr(value, "__wrapped__", None)
    if wrapped is not None:  # functions that are compiled or kept
        return type(value), of(wrapped)
    if type(value).__module__.partition(".")[0] == _LIBRARY and hasattr(value, "__dict__"):
        return type(value), of(vars(value))
    return _Same(value)


class _Same:
    """What is like nothing but itself."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _is_lasting(made: Hashable) -> bool:
    """Of what values are made of: whether all of it is compared, and types stay what they are."""
    if isinstance(made, tuple):
        return all(map(_is_lasting, made))
    if isinstance(made, type | types.ModuleType):
        return _stays(made.__module__ if isinstance(made, type) else made.__name__)
    return not isinstance(made, _Same)


def _stays(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LASTING


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    """The global names that a user's function reads: in a notebook they are defined again. Those of
    installed packages stay what they are."""
    module = (function.__module__ or "").partition(".")[0]
    if module == _LIBRARY or module in _installed():
        return {}
    names, codes = [], [function.__code__]
    while codes:
        code = codes.pop()
        names += code.co_names
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    known = function.__globals__
    return {name: known[name] for name in dict.fromkeys(names) if name in known}


@functools.cache
def _installed() -> frozenset[str]:
    """Top-level modules that came with a package."""
    return frozenset(metadata.packages_distributions())


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a name that is not bound yet
        return None
