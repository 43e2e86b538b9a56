"""The candidate's side: a program that nobody trusts, and what answers questions about it.

Runs inside the sandbox. Whatever the program does to this process, all that leaves it is values: a
program that writes the answers of `Side` itself has only returned values in another way.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from rlvr_jax.verifiers.programs.crossing import Gone, Peer, Values

__all__ = ["Side", "fork_on_demand"]

NAME = "program"  # of the module: what stands under `if __name__ == "__main__"` is left out


def fork_on_demand(
    source: str, control: socket.socket, channels: Iterable[socket.socket], cpu_seconds: int
) -> None:
    """Forks a process with the program for each channel, when it is told to. Does not return.

    Args:
      source: of the program.
      control: a byte comes in for each process, and its number goes out in 4 bytes.
      channels: one for each process, to whoever asks.
      cpu_seconds: of each.
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


class Side:
    """Answers questions about a program.

    Args:
      source: of the program.
      channel: to who asks.
    """

    def __init__(self, source: str, channel: socket.socket):
        self.peer: Peer = Peer(channel, self.answer)
        self._source = source
        self._values = Values(self._remote)
        self._module = types.ModuleType(NAME)

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question: a "value", or what was "raised"."""
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
        # What is no Exception, such as SystemExit, ends the process.

    def _load(self, question: dict[str, Any]) -> dict[str, Any]:
        """Runs the program after what the prompt defines, of which `function` is its own to do."""
        sys.modules[NAME] = self._module
        names = self._module.__dict__
        for path, source in (("<prompt>", question["setup"]), ("<program>", self._source)):
            code = compile(source, path, "exec", dont_inherit=True)
            try:
                exec(code, names)
            except SystemExit as end:
                if end.code:
                    raise
                # What it has defined by then, it has.
            if path == "<prompt>":
                names.pop(question["function"], None)
        return {}

    def _names(self, question: dict[str, Any]) -> dict[str, Any]:
        """What the program has under some names; what does not cross is left out."""
        found = {}
        for name in question["names"]:
            try:
                found[name] = self._values.encode(self._module.__dict__[name])
            except Exception:
                continue
        return {"value": found}

    def _call(self, question: dict[str, Any]) -> dict[str, Any]:
        """Calls a function; with "back", the answer is what it has made of its arguments."""
        return self._called(question, self._values.encode)

    def _make(self, question: dict[str, Any]) -> dict[str, Any]:
        """Calls a class; the object stays here."""

        def encode(value: Any) -> Any:
            try:
                return self._values.encode(value)
            except TypeError:
                return self._values.hand_out("object", value)

        return self._called(question, encode)

    def _called(self, question: dict[str, Any], encode: Callable) -> dict[str, Any]:
        decode = self._values.decode
        arguments = decode(question["arguments"])
        words = {name: decode(value) for name, value in question["words"].items()}
        given = [*arguments, *words.values()]
        value = self._values.given(question["handle"])(*arguments, **words)
        if question["back"]:
            return {"value": None, "arguments": [encode(x) for x in given]}
        return {"value": encode(value)}

    def _attribute(self, question: dict[str, Any]) -> dict[str, Any]:
        found = getattr(self._values.given(question["handle"]), question["name"])
        return {"value": self._values.encode(found)}

    def _next(self, question: dict[str, Any]) -> dict[str, Any]:
        """The next values of an iterator: at most one."""
        for value in self._values.given(question["handle"]):
            return {"value": [self._values.encode(value)]}
        return {"value": []}

    def _text(self, question: dict[str, Any]) -> dict[str, Any]:
        """Calls a function by name; its value as JSON text."""
        function = self._module.__dict__[question["function"]]
        return {"text": json.dumps(function(*question["arguments"]))}

    def _remote(self, kind: str, number: int) -> Any:
        """What stands for a function or an iterator of the other side."""

        def ask(do: str, **more: Any) -> Any:
            answer = self.peer.ask({"do": do, "handle": number, **more})
            if "value" not in answer:
                raise RuntimeError("the other side raised")
            return self._values.decode(answer["value"])

        def items() -> Iterable[Any]:
            while found := ask("next"):
                yield found[0]

        if kind == "iterator":
            return items()
        return lambda *arguments: ask("call", arguments=self._values.encode(arguments))
