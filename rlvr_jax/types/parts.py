"""A part is a value: the function that makes it and the arguments of the call.

    @part(reads={"entropy", "batch_statistics"}, writes={"weight"})
    def keep_top_entropy(fraction: Share) -> Transform:
        def apply(signals, context, state):
            ...
        return apply

`keep_top_entropy(0.2)` is a `Transform` that prints as `keep_top_entropy(fraction=0.2)`, equals any
other `keep_top_entropy(fraction=0.2)`, and is a static argument of a compiled function. A notebook
cell that is run again makes other parts, as its maker is another function.
"""

import dataclasses
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Set
from importlib import metadata
from typing import Any, NamedTuple, TypeVar, overload

import jax
import numpy as np
from jax.core import Tracer

from rlvr_jax.arguments import bound_arguments, hints_of, signature_of

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P", bound="Part")

LONGEST = 40
"""Characters of a text that a label shows; a longer one is shown as its digest."""

_LIBRARY = "rlvr_jax"
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class Made(NamedTuple):
    """The maker of a part, and the names and values of the arguments."""

    maker: Callable[..., Any]
    arguments: tuple[tuple[str, Any], ...]


class Part:
    """Base of the objects that a maker with `@part` returns: frozen dataclasses with eq=False.

    Parts are equal if they are of one maker and of equal arguments. An object that no decorated
    maker returned is equal to itself only.
    """

    made: Made | None = None

    def __post_init__(self) -> None:
        for name in ("reads", "writes"):
            value = getattr(self, name, None)
            if isinstance(value, set | list | tuple):
                object.__setattr__(self, name, frozenset(value))

    @property
    def name(self) -> str:
        """The name of the maker: of the part's state, random stream and metrics."""
        if self.made is not None:
            return self.made.maker.__name__
        first = getattr(self, dataclasses.fields(self)[0].name)  # type: ignore[arg-type]
        return getattr(first, "__qualname__", type(first).__name__).partition(".")[0]

    @property
    def label(self) -> str:
        """The call that makes the part, without the arguments that are the maker's defaults."""
        if self.made is None:
            return self.name
        parameters = signature_of(self.made.maker).parameters
        arguments = [
            f"{name}={label_of(value)}"
            for name, value in self.made.arguments
            if name not in parameters or not _is_same(value, parameters[name].default)
        ]
        return f"{self.name}({', '.join(arguments)})"

    @functools.cached_property
    def lasting(self) -> bool:
        """Whether no value that the part is made of can change unseen.

        Only such parts share compiled functions between runs. Their maker is of this library, and
        its arguments are plain values, parts, and named functions of installed packages. A custom
        function may read a module that is loaded again.
        """
        made = self.made
        if made is None or not _in_library(made.maker):
            return False
        return all(_is_lasting(value) for _, value in made.arguments)

    @functools.cached_property
    def _key(self) -> Hashable:
        made = self.made
        if made is None:
            return _Same(self)
        return _Hashed((made.maker, tuple((name, _key_of(v)) for name, v in made.arguments)))

    @classmethod
    def as_argument(cls, function: str, name: str, value: Any) -> Any:
        """The value, if it is of this kind of parts; see `rlvr_jax.arguments.checked`."""
        if isinstance(value, cls):
            return value
        called = f"; it has to be called: {value.__name__}(…)" if hasattr(value, "__name__") else ""
        got = value.label if isinstance(value, Part) else getattr(value, "__name__", repr(value))
        raise ValueError(f"{function}: {name} must be of kind {cls.__name__}, got {got}{called}")

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Part) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self.label


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Function(Part):
    """A function that is made of arguments, for parts that take functions: a value like them."""

    call: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return self.label

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.call(*arguments, **named)


@overload
def part(maker: F, /) -> F: ...


@overload
def part(
    *, reads: Iterable[str] = (), writes: Iterable[str] | None = None, **declared: Any
) -> Callable[[F], F]: ...


def part(
    maker: Any = None,
    /,
    *,
    reads: Iterable[str] = (),
    writes: Iterable[str] | None = None,
    **declared: Any,
) -> Any:
    """Decorates a function (a maker) so that it returns parts.

    Examples:
      >>> from rlvr_jax.objectives import Transform, part
      >>> from rlvr_jax.types import replace
      >>> from rlvr_jax.types.hyperparameters import Positive
      >>> @part
      ... def scaled(by: Positive = 2.0) -> Transform:
      ...     def apply(signals, context, state):
      ...         return replace(signals, weight=by * signals.weight), state, {}
      ...     return apply
      >>> scaled(3.0)
      scaled(by=3)

    The function's return annotation names the kind of part. It returns the first field of that kind
    (`apply`, for most), or an object of the kind where other fields depend on the arguments.
    Arguments are checked against the annotations of the parameters, see `rlvr_jax.arguments` and
    `rlvr_jax.types.hyperparameters`.

    Args:
      maker: function to decorate.
      reads, writes: fields of the kind; `reads` is added to the reads of a returned object.
      declared: further fields of the kind, the same for all arguments.
    Raises:
      ValueError: when the maker is called, an argument of another type or out of its range.
    """
    if writes is not None:
        declared["writes"] = frozenset(writes)
    reads = frozenset(reads)

    def decorate(maker: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(maker)
        def make(*positional: Any, **named: Any) -> Part:
            bound = bound_arguments(maker, positional, named)
            found = maker(*bound.args, **bound.kwargs)
            if not isinstance(found, Part):
                found = _kind(maker)(found, **declared, **({"reads": reads} if reads else {}))
            elif declared or reads:
                known = {"reads": found.reads | reads} if reads else {}  # type: ignore[attr-defined]
                found = dataclasses.replace(found, **declared, **known)  # type: ignore[type-var]
            else:
                found = dataclasses.replace(found)  # type: ignore[type-var]
            object.__setattr__(found, "made", Made(make, _named(bound)))
            return found

        return make

    return decorate if maker is None else decorate(maker)


def named_parts(parts: Iterable[P], taken: Collection[str] = ()) -> dict[str, P]:
    """Parts by name; the second part of one maker is called name_2, and so on.

    Args:
      taken: names that other parts have.
    """
    named: dict[str, P] = {}
    for one in parts:
        name, number = one.name, 1
        while name in named or name in taken:
            number += 1
            name = f"{one.name}_{number}"
        named[name] = one
    return named


def _named(bound: inspect.BoundArguments) -> tuple[tuple[str, Any], ...]:
    named = []
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named += sorted(value.items())
        else:
            named.append((name, value))
    return tuple(named)


def _kind(maker: Callable[..., Any]) -> Any:
    kind = hints_of(maker).get("return")
    if not (isinstance(kind, type) and issubclass(kind, Part)):
        raise TypeError(
            f"{maker.__name__}: its return annotation must be a kind of part, got {kind!r}"
        )
    return kind


def label_of(value: Any) -> str:
    """A value as labels show it: a part as its label, a function as its name."""
    label = getattr(value, "label", None)
    if isinstance(label, str):
        return label
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        inside = ", ".join(map(label_of, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {label_of(one)}' for key, one in value.items())}}}"
    if isinstance(value, functools.partial):
        return label_of(value.func)
    if isinstance(value, str) and len(value) > LONGEST:
        return hashlib.sha256(value.encode()).hexdigest()[:16]
    return getattr(value, "__name__", str(value))


class _Hashed:
    """A nested tuple that is hashed once."""

    def __init__(self, value: Hashable):
        self.value, self.hash = value, hash(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.hash == other.hash and self.value == other.value

    def __hash__(self) -> int:
        return self.hash


class _Same:
    """An object that equals itself only."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key_of(value: Any) -> Hashable:
    """The key by which an argument is compared when parts are."""
    if isinstance(value, _PLAIN):
        # 1, 1.0 and True are equal and are not the same argument; NaN equals itself as a text.
        return type(value), repr(value) if isinstance(value, float | complex) else value
    if isinstance(value, Part):
        return value._key
    if isinstance(value, tuple | list):
        return type(value), tuple(map(_key_of, value))
    if isinstance(value, Mapping):
        return type(value), tuple((_key_of(key), _key_of(item)) for key, item in value.items())
    if isinstance(value, Tracer):
        return _Same(value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(value)
        return type(value), array.dtype.str, array.shape, array.tobytes()
    if isinstance(value, functools.partial):
        return functools.partial, value.func, _key_of(value.args), _key_of(value.keywords)
    if isinstance(value, Set):
        return type(value), frozenset(map(_key_of, value))
    if _is_plain_dataclass(value):
        fields = dataclasses.fields(value)
        return type(value), tuple(_key_of(getattr(value, field.name)) for field in fields)
    try:
        hash(value)
    except TypeError:
        return _Same(value)
    return type(value), value


def _is_same(value: Any, default: Any) -> bool:
    """Whether an argument is the default, which need not be of the annotated type."""
    if isinstance(value, float) and isinstance(default, int):
        default = type(value)(default)
    if isinstance(value, tuple) and isinstance(default, list):
        default = type(value)(default)
    return _key_of(value) == _key_of(default)


def _is_plain_dataclass(value: Any) -> bool:
    """Whether an object is the values of its fields and nothing else."""
    options = getattr(type(value), "__dataclass_params__", None)
    return options is not None and options.frozen and options.eq


def _is_lasting(value: Any) -> bool:
    if isinstance(value, Part):
        return value.lasting
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_lasting, value))
    if isinstance(value, Mapping):
        return all(map(_is_lasting, (*value.keys(), *value.values())))
    if isinstance(value, functools.partial):
        return all(map(_is_lasting, (value.func, value.args, value.keywords)))
    if callable(value) and (isinstance(value, np.ufunc) or hasattr(value, "__qualname__")):
        return _is_named(value)
    if dataclasses.is_dataclass(value) and _in_library(type(value)):
        fields = dataclasses.fields(value)
        return all(_is_lasting(getattr(value, field.name)) for field in fields)
    arrays = np.ndarray | np.generic | jax.Array
    return isinstance(value, (*_PLAIN, arrays)) and not isinstance(value, Tracer)


def _is_named(value: Any) -> bool:
    """Whether a function or class is one of an installed package, and closes over nothing."""
    module = getattr(value, "__module__", None) or "numpy"  # ufuncs name none
    if module.partition(".")[0] not in _installed():
        return False
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return True
    found: Any = sys.modules.get(module)
    for name in getattr(value, "__qualname__", value.__name__).split("."):
        found = getattr(found, name, None)
    return found is value


def _in_library(made: Any) -> bool:
    return (made.__module__ or "").partition(".")[0] == _LIBRARY


@functools.cache
def _installed() -> frozenset[str]:
    """Top-level modules of installed packages and of the standard library."""
    return frozenset({_LIBRARY, *metadata.packages_distributions(), *sys.stdlib_module_names})
