"""The candidate's side: a process that holds an untrusted program and answers questions about it.

Runs inside the sandbox. Only values leave this process, so a program that writes the answers of
`Side` itself has only returned values in another way.
"""

import asyncio
import builtins
import contextlib
import copy
import json
import operator
import os
import resource
import socket
import sys
import types
from collections.abc import Iterable
from typing import Any

from rlvr_jax.verifiers.programs.python.crossing import Gone, Peer, Values
from rlvr_jax.verifiers.programs.python.library import state_of

_PROGRAM = "program"  # the module: the block under `if __name__ == "__main__"` does not run


def fork_on_demand(
    source: str, control: socket.socket, channels: Iterable[socket.socket], cpu_seconds: int
) -> None:
    """Forks a process with the program for each channel, on request. Does not return.

    Args:
      source: the program.
      control: receives a byte for each process and sends its number in 4 bytes.
      channels: one for each process, to the judge.
      cpu_seconds: of each process.
    """
    channels = list(channels)
    while channels and control.recv(1):
        channel = channels.pop(0)
        pid = os.fork()
        if not pid:
            os.setsid()
            for other in (control, *channels):
                other.close()
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
            try:
                Side(source, channel).peer.serve()
            finally:
                os._exit(1)
        channel.close()
        control.sendall(pid.to_bytes(4, "big"))
        with contextlib.suppress(ChildProcessError):  # all have ended, and been waited for
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    os._exit(0)


def defined(names: dict[str, Any]) -> list[str]:
    """The names of the classes that a prompt defines."""
    return [
        name
        for name, value in names.items()
        if isinstance(value, type) and value.__module__ == names["__name__"]
    ]


class Side:
    """Answers questions about a program, given by its source, over a channel."""

    def __init__(self, source: str, channel: socket.socket):
        self.peer: Peer = Peer(channel, self.answer)
        self._source = source
        self._values = Values(self._remote, objects=True)
        self._module = types.ModuleType(_PROGRAM)

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question: a "value", or the kinds and arguments of an error that was
        "raised"."""
        try:
            return getattr(self, f"_{question['do']}")(question)
        except Gone:
            raise
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            try:
                arguments = self._values.encode(tuple(error.args))
            except Exception:
                arguments = {"tuple": []}
            return {"raised": kinds, "arguments": arguments}
        # Another BaseException, such as SystemExit, ends the process.

    def _load(self, question: dict[str, Any]) -> dict[str, Any]:
        """Runs the program after the prompt's definitions, except `function`, which the program
        must define. `classes` of the test are the program's classes of equal names, or have only
        attributes."""
        sys.modules[_PROGRAM] = self._module
        names = self._module.__dict__
        for path, source in (("<prompt>", question["setup"]), ("<program>", self._source)):
            code = compile(source, path, "exec", dont_inherit=True)
            try:
                exec(code, names)
            except SystemExit as end:
                if end.code:
                    raise
                # Names that it has defined by then count.
            if path == "<prompt>":
                names.pop(question["function"], None)
                shared = defined(names)
        classes = {name: names[name] for name in shared if isinstance(names.get(name), type)}
        for name in question["classes"]:
            own = names.get(name)
            classes[name] = own if isinstance(own, type) else type(name, (), {})
        self._values.known = lambda: classes
        return {}

    def _names(self, question: dict[str, Any]) -> dict[str, Any]:
        """The program's values of some names; a value that does not cross is left out."""
        found = {}
        for name in question["names"]:
            try:
                value = self._module.__dict__[name]
                if not isinstance(value, types.ModuleType):
                    found[name] = self._values.encode(value)
            except Exception:
                continue
        return {"value": found}

    def _call(self, question: dict[str, Any]) -> dict[str, Any]:
        """Calls a function; with "back", the answer has its arguments as it has changed them."""
        arguments = self._values.decode(question["arguments"])
        words = {name: self._values.decode(word) for name, word in question["words"].items()}
        given = [*arguments, *words.values()]
        value = self._values.given(question["handle"])(*arguments, **words)
        if question["back"]:
            return {"value": None, "arguments": self._values.encode(given)}
        return {"value": self._values.encode(value)}

    def _operate(self, question: dict[str, Any]) -> dict[str, Any]:
        """The result of an operation, by its name in `operator`, `builtins` or `copy`."""
        name = question["name"]
        function = next(vars(m)[name] for m in (operator, builtins, copy) if name in vars(m))
        return {"value": self._values.encode(function(*self._values.decode(question["arguments"])))}

    def _await(self, question: dict[str, Any]) -> dict[str, Any]:
        """The result of a coroutine."""
        return {"value": self._values.encode(asyncio.run(self._values.given(question["handle"])))}

    def _state(self, question: dict[str, Any]) -> dict[str, Any]:
        """The class of an object, and its attributes."""
        value = self._values.given(question["handle"])
        return {"value": self._values.encode((type(value).__name__, state_of(value)))}

    def _next(self, question: dict[str, Any]) -> dict[str, Any]:
        """The next values of an iterator: at most one."""
        try:
            return {"value": [self._values.encode(next(self._values.given(question["handle"])))]}
        except StopIteration:
            return {"value": []}

    def _text(self, question: dict[str, Any]) -> dict[str, Any]:
        """Calls a function by name; its value as JSON text."""
        function = self._module.__dict__[question["function"]]
        value = function(*self._values.decode(question["arguments"]))
        sys.set_int_max_str_digits(0)  # which bounds texts, not values
        return {"text": json.dumps(value)}

    def _remote(self, kind: str, number: int) -> Any:
        """A function or an iterator that calls the other side."""

        def query(do: str, **more: Any) -> Any:
            answer = self.peer.query({"do": do, "handle": number, **more})
            if "value" not in answer:
                raise RuntimeError("the other side raised")
            return self._values.decode(answer["value"])

        def items() -> Iterable[Any]:
            while found := query("next"):
                yield found[0]

        if kind == "iterator":
            return items()
        return lambda *arguments: query("call", arguments=self._values.encode(arguments))
