"""Proxies in a test for functions and objects of the program, which performs their operations.

An operation returns a value that the program chooses, like a call. The test never requests
whether its object is the expected value: an object equals no value of the test. An operator gets an
expected value only if the test itself has made the object, whose operators it then tests. Two
objects are equal under three conditions: the program reports that they are, their attributes are
equal, and one is made by the test and holds its arguments. This file runs inside the sandbox and
needs only the standard library.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_ASKED = ("len", "str", "repr", "bool", "int", "float", "complex", "iter", "reversed", "format")
_ASKED += ("round", "__index__", "__abs__", "__neg__", "__pos__", "__invert__")
_ASKED += ("__getitem__", "__setitem__", "__delitem__")
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_BINARY += ("lshift", "rshift", "and", "or", "xor")
_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")


class Object:
    """Represents an object of the program, which a `Judge` calls."""

    def __init__(self, asks: Any, handle: int):
        # `of`: arguments from which the test made it. `made`: by the test or by its operators.
        vars(self).update(_asks=asks, _handle=handle, _made=False, _of=())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._asks.operate("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._asks.operate("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._asks.operate("delattr", self, name)

    def __next__(self) -> Any:
        for value in self._asks.following(self._handle):
            return value
        raise StopIteration

    def __copy__(self) -> Any:
        return self._asks.operate("copy", self)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._asks.operate("deepcopy", self)

    def __contains__(self, value: Any) -> bool:
        if self._made or isinstance(value, Object):
            return bool(self._asks.operate("__contains__", self, value))
        return any(part == value for part in self)

    def __enter__(self) -> Any:
        return self._asks.operate("getattr", self, "__enter__")()

    def __exit__(self, *raised: object) -> bool:
        return bool(self._asks.operate("getattr", self, "__exit__")(None, None, None))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Object):
            return False
        if self._handle == other._handle:
            return True
        if not (_holds(self) or _holds(other)):
            return False
        return self._asks.operate("__eq__", self, other) is True and _alike(self, other, set())

    def __hash__(self) -> int:
        return 0  # equal objects may have different handles


class Function(Object):
    """Represents a callable of the program."""

    def __init__(self, asks: Any, handle: int):
        super().__init__(asks, handle)
        vars(self).update(_makes=False)  # True: a class that the test makes objects of

    def __call__(self, *arguments: Any, **words: Any) -> Any:
        value = self._asks.call(self, arguments, words, False)
        if self._makes and isinstance(value, Object):
            vars(value).update(_made=True, _of=(*arguments, *words.values()))
        return value

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Object) and bool(self._asks.operate("isinstance", value, self))

    def discard(self, *arguments: Any, **words: Any) -> None:
        """Calls it for its effect on its arguments."""
        self._asks.call(self, arguments, words, True)


def _asked(name: str) -> Callable[..., Any]:
    def query(self: Object, *arguments: Any) -> Any:
        return self._asks.operate(name, self, *arguments)

    return query


def _operator(name: str, reflected: bool = False) -> Callable[[Object, Any], Any]:
    def operate(self: Object, other: Any) -> Any:
        if not (self._made or isinstance(other, Object)):
            return NotImplemented
        value = self._asks.operate(name, *((other, self) if reflected else (self, other)))
        if isinstance(value, Object) and (self._made or other._made):
            vars(value).update(_made=True)
        return value

    return operate


for _name in _ASKED:
    setattr(Object, f"__{_name.strip('_')}__", _asked(_name))
for _name in _ORDER:
    setattr(Object, _name, _operator(_name))
for _name in _BINARY:
    setattr(Object, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Object, f"__i{_name}__", _operator(f"__i{_name}__"))
    setattr(Object, f"__r{_name}__", _operator(f"__{_name}__", reflected=True))


def _holds(value: Object) -> bool:
    """Whether an object that a test has made holds its arguments."""
    wanted = [*_leaves(value._of, set())]
    held = [*_leaves(value, set())] if wanted else []
    return bool(wanted) and all(leaf in held for leaf in wanted)


def _leaves(value: Any, seen: set[int]) -> Iterator[tuple[type, Any]]:
    """The parts of a value, with their types; each object is visited once."""
    if isinstance(value, Object):
        if value._handle not in seen:
            seen.add(value._handle)
            yield from _leaves(value._asks.state(value)[1], seen)
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from _leaves(pair, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _leaves(part, seen)
    else:
        yield type(value), value


def _alike(first: Any, second: Any, seen: set[tuple[int, int]]) -> bool:
    """Whether two values have equal parts, objects by their attributes."""
    if isinstance(first, Object) and isinstance(second, Object):
        pair = first._handle, second._handle
        if pair[0] == pair[1] or pair in seen:
            return True
        seen.add(pair)
        return _alike(first._asks.state(first), second._asks.state(second), seen)
    if type(first) is not type(second):
        return False
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(
            _alike(part, second[name], seen) for name, part in first.items()
        )
    if isinstance(first, list | tuple):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(_alike(a, b, seen) for a, b in pairs)
    return first == second
