"""Values between two processes that do not trust each other: lines of JSON that keep types.

Some values cross as copies: built-in types, values of the standard library (`library`) and
instances of classes that both sides know. A program's `==`, `len` or `hash` stays with the program.
Functions, iterators and other objects stay where they are, and a handle crosses. This file runs
inside the sandbox and needs only the standard library.
"""

import json
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from enum import Enum
from typing import Any

from rlvr_jax.verifiers.programs.python.library import (
    TAGS,
    put_together,
    set_state,
    state_of,
    taken_apart,
)

MOST_BYTES = 2**22  # of one message
_CHUNK = 65536
_SMALL = 2**53  # larger integers are written in hexadecimal: reading decimals takes quadratic time
# Types that cross as lists of parts, subclasses as their base types. Methods of the base: those of
# a subclass may return other values than it holds.
_PARTS = (
    ("tuple", tuple, tuple.__iter__, tuple),
    ("set", set, set.__iter__, set),
    ("frozenset", frozenset, frozenset.__iter__, frozenset),
    ("dict", dict, dict.items, dict),
    ("keys", type({}.keys()), iter, lambda parts: dict.fromkeys(parts).keys()),
    ("items", type({}.items()), iter, lambda parts: dict(parts).items()),
    ("values", type({}.values()), iter, lambda parts: dict(enumerate(parts)).values()),
    ("range", range, lambda value: (value.start, value.stop, value.step), lambda p: range(*p)),
    ("complex", complex, lambda value: (value.real, value.imag), lambda p: complex(*p)),
)
_TOGETHER = {tag: together for tag, _, _, together in _PARTS}
_HEXADECIMAL = {
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "int": lambda text: int(text, 16),
}
_NOT_OURS = (LookupError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError)
_KINDS = ("function", "iterator", "coroutine", "object")


class Gone(Exception):
    """The other side has ended, or has sent no message."""


class Peer:
    """One end of a connection on which both sides send questions, and answer while they wait.

    Args:
      answer: (question) -> answer. Both are dictionaries; a question has "do".
    """

    def __init__(self, channel: socket.socket, answer: Callable[[dict], dict]):
        self._channel = channel
        self._answer = answer
        self._rest = bytearray()

    def query(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question, while questions of the other side are answered; raises
        `Gone`."""
        self._send(question)
        while True:
            message = self._receive()
            if "do" not in message:
                return message
            self._send(self._answer(message))

    def serve(self) -> None:
        """Answers until the other side is gone, which raises `Gone`."""
        while True:
            self._send(self._answer(self._receive()))

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Gone from error

    def _receive(self) -> dict[str, Any]:
        start = 0
        while (end := self._rest.find(b"\n", start)) < 0:
            start = len(self._rest)
            try:
                chunk = self._channel.recv(_CHUNK)
            except OSError as error:
                raise Gone from error
            if not chunk or start > MOST_BYTES:
                raise Gone
            self._rest += chunk
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Gone from error
        if not isinstance(message, dict):
            raise Gone
        return message


class Values:
    """Values as JSON and back, and handles on values that do not cross.

    Args:
      remote: (kind, number) -> a proxy for a "function", "iterator", "coroutine" or "object" of the
        other side.
      objects: whether handles on any object cross; False: only on functions and iterators.
    """

    def __init__(self, remote: Callable[[str, int], Any], objects: bool = False):
        self.known: Callable[[], Mapping[str, Any]] = dict
        """Classes that both sides have by these names now; their instances cross as copies."""
        self._remote = remote
        self._objects = objects
        self._nodes: list[Any] = []  # instances of these classes in the value that crosses
        self._numbers: dict[int, int] = {}  # by id
        self._given: list[Any] = []
        self._handles: dict[int, dict[str, int]] = {}  # by id; its values stay alive
        self._alive: list[Any] = []

    def given(self, number: Any) -> Any:
        """The value of one of our handles; raises LookupError or TypeError without one."""
        return self._given[number]

    def hand_out(self, kind: str, value: Any) -> dict[str, int]:
        """A handle on a value that stays here."""
        if id(value) not in self._handles:
            self._handles[id(value)] = {kind: len(self._given)}
            self._given.append(value)
        return self._handles[id(value)]

    def encode(self, value: Any) -> Any:
        """The value as JSON; raises TypeError if it cannot cross, RecursionError if it is too
        deep."""
        self._nodes, self._numbers = [], {}
        found = self._encoded(value)
        states: list[Any] = []
        while len(states) < len(self._nodes):  # which grows here, as for a list of a thousand nodes
            node = self._nodes[len(states)]
            state = [[name, self._encoded(part)] for name, part in state_of(node).items()]
            states.append([type(node).__name__, state])
        return {"graph": [found, states]} if states else found

    def _encoded(self, value: Any) -> Any:
        if value is None or value is True or value is False:
            return value
        if isinstance(value, int):
            number = int.__int__(value)
            return number if abs(number) < _SMALL else {"int": hex(number)}
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, list):
            return [self._encoded(part) for part in list.__iter__(value)]
        if (found := taken_apart(value)) is not None:
            return {found[0]: self._encoded(found[1])}
        for tag, kind, apart, _ in _PARTS:
            if isinstance(value, kind):
                return {tag: [self._encoded(part) for part in apart(value)]}
        if isinstance(value, bytes | bytearray):
            return {"bytes" if isinstance(value, bytes) else "bytearray": bytes(value).hex()}
        if type(value).__module__ == "numpy":
            return self._encoded(value.tolist())
        if id(value) in self._handles:
            return self._handles[id(value)]
        name = type(value).__name__
        if name in self.known():
            return self._instance(name, value)
        # An iterator of another module, such as a file, may have further methods.
        plain = type(value).__module__ in ("builtins", "itertools")
        if isinstance(value, Iterator) and (plain or not self._objects):
            return self.hand_out("iterator", value)
        if isinstance(value, Coroutine):
            return self.hand_out("coroutine", value)
        if callable(value):
            return self.hand_out("function", value)
        if self._objects:
            return self.hand_out("object", value)
        raise TypeError(f"a value of type {type(value).__name__} is not a built-in value")

    def _instance(self, name: str, value: Any) -> Any:
        if isinstance(value, Enum):
            return {"member": [name, value.name]}
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._nodes)
            self._nodes.append(value)
        return {"node": self._numbers[id(value)]}

    def decode(self, found: Any) -> Any:
        """The value that `encode` has written; raises `Gone` for other JSON."""
        try:
            return self._decoded(found)
        except _NOT_OURS as error:
            raise Gone from error

    def _decoded(self, found: Any) -> Any:
        if isinstance(found, list):
            return [self._decoded(part) for part in found]
        if not isinstance(found, dict):
            return found
        ((tag, content),) = found.items()
        if tag in _TOGETHER:
            return _TOGETHER[tag]([self._decoded(part) for part in content])
        if tag in _HEXADECIMAL:
            return _HEXADECIMAL[tag](content)
        if tag == "yours":
            return self._given[content]
        if tag in TAGS:
            return put_together(tag, self._decoded(content))
        if tag == "member":
            return self.known()[content[0]][content[1]]
        if tag == "graph":
            return self._graph(*content)
        if tag == "node":
            return self._nodes[content]
        if tag not in _KINDS or not isinstance(content, int):
            raise ValueError(tag)
        value = self._remote(tag, content)
        self._handles[id(value)] = {"yours": content}
        self._alive.append(value)
        return value

    def _graph(self, found: Any, states: list[Any]) -> Any:
        classes = self.known()
        self._nodes = [object.__new__(classes[name]) for name, _ in states]
        for node, (_, state) in zip(list(self._nodes), states, strict=True):
            set_state(node, {name: self._decoded(part) for name, part in state})
        return self._decoded(found)
