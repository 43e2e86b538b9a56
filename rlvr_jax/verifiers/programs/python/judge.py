"""The judge's side: a test of a program that runs in another process.

Runs inside the sandbox. A test with assertions runs as it is written. Names that neither the test
nor the prompt defines belong to the program. Its functions are called there, with copies of their
arguments. They return values that cross (`crossing`), iterators, further functions, and objects
whose operations are requested (`remote`). Classes are names with a capital. If a statement is only
a call, its effect on its arguments is copied back: lists, dictionaries, sets, byte arrays and
instances of the prompt's classes change. An exception of the program arrives as the nearest
built-in one. A program that ends, ends the test.
"""

import ast
import builtins
import importlib
import itertools
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from rlvr_jax.verifiers.programs.python.candidate import defined
from rlvr_jax.verifiers.programs.python.crossing import Gone, Peer, Values
from rlvr_jax.verifiers.programs.python.library import set_state, state_of
from rlvr_jax.verifiers.programs.python.remote import Function, Object

MOST_TEXT = 2**20  # characters of a value that is handed on
_DISCARD = " discard"  # no name that a test can write


class Judge:
    """Puts one test to a program; `report` takes a word for the result, and a text."""

    def __init__(self, channel: socket.socket, report: Callable[..., None]):
        self._peer = Peer(channel, self.answer)
        self._report = report
        self._values = Values(self._remote)

    def run(self, test: dict[str, Any]) -> None:
        """Runs a test and reports a word: "program" (not loaded), "passed", "assertion", "raised",
        "value" (of a call, with its text), "ended" (no answer), "large"."""
        setup, function = test.get("setup", ""), test.get("function", "")
        question = {"do": "load", "setup": setup, "function": function}
        answer = self.query(question | {"classes": _classes(test.get("code", ""))})
        if "raised" in answer:
            self._report("program")
        elif test["kind"] == "call":
            answer = self.query({"do": "text", "function": function, "arguments": test["args"]})
            text = answer.get("text")
            if not isinstance(text, str) or "\n" in text:
                self._report("raised")
            elif len(text) > MOST_TEXT:
                self._report("large")
            else:
                self._report("value", text)
        else:
            try:
                self._assert(test["code"], setup, function)
            except AssertionError:
                self._report("assertion")
            except BaseException:
                self._report("raised")
            else:
                self._report("passed")

    def query(self, question: dict[str, Any]) -> dict[str, Any]:
        """Sends the program a question; if it has ended, so does this process: no test can catch
        that."""
        try:
            return self._peer.query(question)
        except Gone:
            self._end()

    def result(self, answer: dict[str, Any]) -> Any:
        """The value of an answer; raises the error of one that has it."""
        if "raised" in answer:
            raise self._error(answer)
        return self._decode(answer.get("value"))

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answers a program that requests the value of a function or iterator of the test."""
        try:
            given = self._values.given(question["handle"])
            if question["do"] == "next":
                return {"value": [*map(self._values.encode, itertools.islice(given, 1))]}
            arguments = self._decode(question["arguments"])
            return {"value": self._values.encode(given(*arguments))}
        except Exception:
            return {"raised": []}

    def _assert(self, code: str, setup: str, function: str) -> None:
        names: dict[str, Any] = {"__name__": "tests", _DISCARD: discard}
        if "random" in code or "random" in setup:
            importlib.import_module("random").seed(0)  # so that the test is the same each time
        exec(compile(setup, "<prompt>", "exec", dont_inherit=True), names)
        names.pop(function, None)  # which the program must define
        self._values.known = lambda: {name: names[name] for name in defined(names)}
        tree = ast.parse(code)
        wanted = _undefined(tree) - names.keys() - vars(builtins).keys() | {function} - {""}
        found = self.query({"do": "names", "names": sorted(wanted)}).get("value")
        for name in wanted:
            if isinstance(found, dict) and name in found:
                names[name] = self._decode(found[name])
                if isinstance(names[name], Function) and name.lstrip("_")[:1].isupper():
                    vars(names[name]).update(_makes=True)
            elif name in sys.stdlib_module_names:  # which the program should have imported
                names[name] = importlib.import_module(name)
        tree = ast.fix_missing_locations(_Discards().visit(tree))
        exec(compile(tree, "<tests>", "exec", dont_inherit=True), names)

    def _error(self, answer: dict[str, Any]) -> Exception:
        """The nearest built-in exception; RuntimeError for the end of an iteration, which a loop
        would swallow."""
        arguments = self._decode(answer.get("arguments"))
        if not isinstance(arguments, tuple) or not isinstance(answer["raised"], list):
            self._end()
        for name in answer["raised"]:
            kind = getattr(builtins, name, None) if isinstance(name, str) else None
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                continue
            if issubclass(kind, StopIteration | StopAsyncIteration):
                return RuntimeError("the program raised StopIteration")
            try:
                return kind(*arguments)
            except TypeError:  # it requires others
                continue
        return Exception(*arguments)

    def _decode(self, found: Any) -> Any:
        try:
            return self._values.decode(found)
        except Gone:
            self._end()

    def _end(self) -> NoReturn:
        self._report("ended")
        os._exit(0)

    def _remote(self, kind: str, number: int) -> Any:
        if kind == "iterator":
            return self._iterator(number)
        if kind == "coroutine":
            return self._coroutine(number)
        return Function(self, number) if kind == "function" else Object(self, number)

    def _iterator(self, number: int) -> Iterator[Any]:
        """Each value is fetched once, when it is needed."""
        while found := self.following(number):
            yield found[0]

    async def _coroutine(self, number: int) -> Any:
        """Runs in the program when it is awaited here."""
        return self.result(self.query({"do": "await", "handle": number}))

    def following(self, handle: int) -> list[Any]:
        """The next values of an iterator: at most one."""
        found = self.result(self.query({"do": "next", "handle": handle}))
        if not isinstance(found, list) or len(found) > 1:
            self._end()
        return found

    def operate(self, name: str, *arguments: Any) -> Any:
        """The result of one of Python's operations in the program."""
        encoded = self._values.encode(arguments)
        return self.result(self.query({"do": "operate", "name": name, "arguments": encoded}))

    def state(self, value: Object) -> tuple[str, Any]:
        """The name of an object's class, and its attributes."""
        found = self.result(self.query({"do": "state", "handle": value._handle}))
        if not isinstance(found, tuple) or len(found) != 2:
            self._end()
        return found

    def call(
        self, function: Function, arguments: tuple[Any, ...], words: dict[str, Any], back: bool
    ) -> Any:
        """Calls a function; with `back`, changes the arguments as the program did."""
        encode = self._values.encode
        question = {
            "do": "call",
            "handle": function._handle,
            "arguments": encode(arguments),
            "words": {name: encode(value) for name, value in words.items()},
            "back": back,
        }
        answer = self.query(question)
        result = self.result(answer)
        if back:
            changed = self._decode(answer.get("arguments"))
            for old, new in zip([*arguments, *words.values()], changed or (), strict=False):
                self._change(old, new)
        return result

    def _change(self, old: Any, new: Any) -> None:
        """Changes a value of the test as the program has changed its copy."""
        if isinstance(old, list | bytearray) and isinstance(new, list | bytearray):
            old[:] = new
        elif isinstance(old, deque) and isinstance(new, deque):
            old.clear()
            old.extend(new)
        elif isinstance(old, dict | set) and isinstance(new, dict | set):
            old.clear()
            old.update(new)
        elif type(old).__name__ in self._values.known() and type(new) is type(old):
            set_state(old, state_of(new))


def discard(function: Callable, *arguments: Any, **words: Any) -> None:
    """Calls a function whose value is not used."""
    call = function.discard if isinstance(function, Function) else function
    call(*arguments, **words)


class _Discards(ast.NodeTransformer):
    """Makes `discard(f, x)` of a statement `f(x)`."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute):
            call.args.insert(0, call.func)
            call.func = ast.Name(_DISCARD, ast.Load())
        return node


def _classes(code: str) -> list[str]:
    """The names of the classes that a test defines."""
    try:
        return [node.name for node in ast.parse(code).body if isinstance(node, ast.ClassDef)]
    except (SyntaxError, ValueError, RecursionError):
        return []


def _undefined(tree: ast.AST) -> set[str]:
    """The names that a test uses and never sets."""
    used, defined = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            defined.add(node.name)
    return used - defined
