"""What a tool is: text in, text out, limited in time and size."""

from __future__ import annotations

import concurrent.futures
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Lost", "Tool", "ToolError", "as_text", "in_time", "tool"]


class ToolError(Exception):
    """What a tool tells the policy that it cannot do; its text is the reply."""


class Lost(Exception):
    """A tool's process was ended from outside: nobody knows what it would have said."""


@dataclass(frozen=True)
class Tool:
    """Something a policy may call.

    Fields:
      name: by which it is called.
      description: for the policy, a sentence.
      parameters: what it takes, by name, each a JSON schema such as {"type": "string"}. A call that
        gives a text alone means the first.
      run: (arguments, state) -> (state, text). The state is picklable and None at the start of an
        episode. Raises `ToolError` for what the policy is told, `Lost`.
      seconds: after which the policy is told that it took too long. A tool that can end its own
        work does so before.
      characters: of a reply; what is longer is cut, and the policy is told.
    Raises:
      ValueError: a name that is empty or no parameters; a limit that is not positive.
    """

    name: str
    description: str
    parameters: Mapping[str, Mapping[str, Any]]
    run: Callable[[Mapping[str, Any], Any], tuple[Any, str]]
    seconds: float = 30.0
    characters: int = 2000

    def __post_init__(self) -> None:
        if not self.name or not self.parameters:
            raise ValueError(
                "Tool: name and parameters must not be empty, got"
                f" {self.name!r} and {list(self.parameters)}"
            )
        for name in ("seconds", "characters"):
            if not getattr(self, name) > 0:
                raise ValueError(f"Tool: {name} must be positive, got {getattr(self, name)}")

    @property
    def schema(self) -> Mapping[str, Any]:
        """What it is called and takes, as JSON."""
        parameters = {"type": "object", "properties": dict(self.parameters)}
        return {"name": self.name, "description": self.description, "parameters": parameters}


_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}


def tool(function: Callable[..., Any], name: str | None = None, **limits: Any) -> Tool:
    """A tool of a function: its arguments are the parameters, its docstring the description.

    Args:
      function: of arguments that JSON can say; what it returns is shown as text.
      name: by which it is called; None: the function's.
      limits: `seconds`, `characters` of `Tool`.
    Raises:
      ValueError: a function without arguments, or without a docstring.
    """
    name = name or function.__name__
    description = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
    if not description:
        raise ValueError(f"tool: {name} must have a docstring, which the policy is shown")
    parameters = {}
    for each in inspect.signature(function).parameters.values():
        kind = getattr(each.annotation, "__name__", each.annotation)
        parameters[each.name] = {"type": _TYPES.get(kind, "string")}
        if each.default is not each.empty:
            parameters[each.name]["default"] = each.default

    def run(arguments, state):
        return state, str(function(**arguments))

    return Tool(name, description, parameters, run, **limits)


def in_time(call: Callable[[], Any], seconds: float, name: str) -> Any:
    """What a call gives, if it gives it in time.

    Raises:
      TimeoutError: it took too long. Its thread, of this name, goes on: nothing of Python's can end
        it.
    """
    told: concurrent.futures.Future = concurrent.futures.Future()

    def work():
        try:
            told.set_result(call())
        except BaseException as error:
            told.set_exception(error)

    threading.Thread(target=work, daemon=True, name=name).start()
    return told.result(timeout=seconds)


def as_text(told: Any, characters: int) -> str:
    """Something as a text that every tokenizer takes; what is longer than so many characters is
    cut, and says so."""
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    # Half of a surrogate pair is no text that a tokenizer takes.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) > characters:
        text = f"{text[:characters]}… ({characters} of {len(text)} characters)"
    return text
