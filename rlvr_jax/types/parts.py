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
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from importlib import metadata
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import jax
import numpy as np
from jax.core import Tracer

from rlvr_jax.ranges import Range, is_whole

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P", bound="Part")

LONGEST = 40
"""Characters of a text that a label shows; a longer one is shown as its digest."""

_LIBRARY = "rlvr_jax"
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class Made(NamedTuple):
    """How a part was made: its maker, and names and values of the arguments."""

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
        parameters = _signature(self.made.maker).parameters
        told = [
            f"{name}={label_of(value)}"
            for name, value in self.made.arguments
            if name not in parameters or not _is_same(value, parameters[name].default)
        ]
        return f"{self.name}({', '.join(told)})"

    @functools.cached_property
    def lasting(self) -> bool:
        """Whether no value that the part is made of can change unseen.

        Compiled functions are shared between runs for such parts only: a maker of this library,
        whose arguments are plain values, parts, and named functions of installed packages. A
        custom function may read a module that is loaded again.
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

    The function's return annotation names the kind of part. It returns the first field of that kind
    (`apply`, for most), or an object of the kind where other fields depend on the arguments.
    Arguments are checked against the annotations of the parameters, see
    `rlvr_jax.types.hyperparameters`.

    Args:
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
            bound = _bound(maker, positional, named)
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


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Checks arguments against the annotations of a function.

    Raises:
      ValueError: an argument of another type or out of its range.
    """
    for name, value in arguments.items():
        checked(function.__name__, name, value, _hints(function).get(name, Any))


def check_each(hint: Any, function: str, /, **values: Any) -> None:
    """Checks values of a function that is not a part against one annotated type."""
    for name, value in values.items():
        checked(function, name, value, hint)


def described(function: Callable[..., Any]) -> dict[str, str]:
    """Description and range of a function's parameters, from their types, by name."""
    found = {}
    for name, hint in _hints(function).items():
        extras = [one for one in _extras(hint) if isinstance(one, str | Range)]
        words = [str(one) for one in extras if isinstance(one, str)]
        words += [str(one) for one in extras if isinstance(one, Range)]
        if words:
            found[name] = ", ".join(words)
    return found


def annotations_of(function: Callable[..., Any], name: str) -> tuple[Any, ...]:
    """The annotations of a parameter's type: ranges, descriptions, and others."""
    return _extras(_hints(function).get(name, Any))


def _extras(hint: Any) -> tuple[Any, ...]:
    """The annotations of a type, and of the members of a union."""
    if get_origin(hint) is Annotated:
        return get_args(hint)[1:]
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(extra for member in get_args(hint) for extra in _extras(member))
    return ()


def _bound(maker, positional, named) -> inspect.BoundArguments:
    """The arguments of a call, defaults and all, as values of the annotated types."""
    signature = _signature(maker)
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        names = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
        raise TypeError(f"{maker.__name__}: {error}; it takes {inspect.Signature(names)}") from None
    bound.apply_defaults()
    hints = _hints(maker)
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if name not in hints or kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            value = tuple(checked(maker.__name__, name, one, hints[name]) for one in value)
        else:
            value = checked(maker.__name__, name, value, hints[name])
        bound.arguments[name] = value
    return bound


def _named(bound: inspect.BoundArguments) -> tuple[tuple[str, Any], ...]:
    named = []
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named += sorted(value.items())
        else:
            named.append((name, value))
    return tuple(named)


@functools.cache
def _signature(maker: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(maker)


@functools.cache
def _hints(maker: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(maker, include_extras=True)
    except (NameError, TypeError):  # names that are imported for type checkers only
        return {}


def _kind(maker: Callable[..., Any]) -> Any:
    kind = _hints(maker).get("return")
    if not (isinstance(kind, type) and issubclass(kind, Part)):
        raise TypeError(
            f"{maker.__name__}: its return annotation must be a kind of part, got {kind!r}"
        )
    return kind


def checked(function: str, name: str, value: Any, hint: Any) -> Any:
    """The value as one of an annotated type: an integer as a float, a list as a tuple.

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
                raise ValueError(f"{function}: {name} must be {wanted}, got {given}")
        return value
    if origin in (Union, types.UnionType):
        return _of_union(function, name, value, get_args(hint))
    if origin is Callable:
        if callable(value):
            return value
        raise ValueError(f"{function}: {name} must be a function, got {value!r}")
    if origin is Literal and value not in get_args(hint):
        wanted = ", ".join(map(repr, get_args(hint)))
        raise ValueError(f"{function}: {name} must be one of {wanted}, got {value!r}")
    if isinstance(hint, type) and issubclass(hint, Part):
        return _of_kind(function, name, value, hint)
    if type(value) in (list, tuple):
        kinds = get_args(hint)
        if origin in (Sequence, Iterable) or (origin is tuple and kinds[1:] == (Ellipsis,)):
            return tuple(checked(function, f"each of {name}", one, kinds[0]) for one in value)
        return tuple(value)
    if origin is Mapping and isinstance(value, Mapping):
        kind = get_args(hint)[1]
        return {k: checked(function, f"{k} of {name}", one, kind) for k, one in value.items()}
    listed = tuple if origin is tuple else Sequence | np.ndarray | Tracer
    if origin in (Sequence, tuple) and not isinstance(value, listed):
        raise ValueError(f"{function}: {name} must be a list or tuple, got {label_of(value)}")
    if isinstance(value, Tracer):
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


def _of_kind(function, name, value, kind):
    if isinstance(value, kind):
        return value
    called = f"; it has to be called: {value.__name__}(…)" if hasattr(value, "__name__") else ""
    got = value.label if isinstance(value, Part) else getattr(value, "__name__", repr(value))
    raise ValueError(f"{function}: {name} must be of kind {kind.__name__}, got {got}{called}")


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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, Tracer)


def _as_float(function, name, value):
    if (
        isinstance(value, bool | np.bool_ | str)
        or np.ndim(value)
        or not hasattr(value, "__float__")
    ):
        raise ValueError(f"{function}: {name} must be a number, got {value!r}")
    return float(value)


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
