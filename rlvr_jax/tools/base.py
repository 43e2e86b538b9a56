"""Tools: text in, text out, limited in time and size."""

import asyncio
import concurrent.futures
import inspect
import itertools
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlvr_jax.tools.schemas import caller, described, named, parameters_of

_SHOWN = 80  # characters of a value that an error shows
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")


class ToolError(Exception):
    """A tool cannot do something; the message is the reply to the policy."""


class Lost(Exception):
    """A tool's process was ended from outside, so its result is unknown."""


@dataclass(frozen=True)
class Tool:
    """An action that a policy may call.

    Fields:
      name: name in calls.
      description: a sentence for the policy.
      parameters: JSON schemas such as {"type": "string"}, by name. If a call is only a text, it is
        the first parameter. A parameter with a "default" is optional.
      run: (arguments, state) -> (state, text). The state is picklable, and None at the start of an
        episode. Raises `ToolError` for the policy, or `Lost`.
      seconds: time limit (seconds); the policy reads that it was exceeded. A tool that can end its
        work does so before.
      characters: largest size of a reply; a longer one is truncated with a note.
    Raises:
      ValueError: the name or the parameters are empty, or a limit is not positive.
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
        """Its name, description and parameters, as JSON."""
        parameters = {"type": "object", "properties": dict(self.parameters)}
        required = [name for name, schema in self.parameters.items() if "default" not in schema]
        if required:
            parameters["required"] = required
        return {"name": self.name, "description": self.description, "parameters": parameters}


def tool(function: Callable[..., Any], name: str | None = None, **limits: Any) -> Tool:
    """Makes a tool of a function: its arguments are the parameters, its docstring the description.

    Examples:
      >>> from rlvr_jax.tools import tool
      >>> def double(x: int) -> int:
      ...     "Twice a number."
      ...     return 2 * x
      >>> tool(double).name, tool(double).description
      ('double', 'Twice a number.')

    Args:
      function: each argument must have a type that JSON has. The docstring may describe the
        arguments under `Args:`. The result is shown as text (`shown`); it may be a coroutine.
      name: name in calls; None: the function's name.
      limits: `seconds`, `characters` of `Tool`.
    Raises:
      ValueError: the function has no arguments, no docstring, *args or **kwargs, or an argument of
        a type that JSON does not have.
    """
    name = name or named(function)
    description, _ = described(function)
    if not description:
        raise ValueError(f"tool: {name} must have a docstring, which the policy is shown")
    call = caller(function)
    characters = limits.get("characters", Tool.characters)

    def run(arguments, state):
        return state, shown(call(arguments), characters)

    return Tool(name, description, parameters_of(function), run, **limits)


def awaited(value: Any) -> Any:
    """The result of a coroutine or another awaitable; any other value unchanged."""
    if not inspect.isawaitable(value):
        return value

    async def wait():
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # in a notebook a loop runs already
        return pool.submit(asyncio.run, wait()).result()


def shown(value: Any, characters: int) -> str:
    """The result of a tool as text. A coroutine is awaited, an iterator becomes a list of at most
    `characters` values, bytes are decoded. Raises TypeError if the text of a value is an address in
    memory."""
    value = awaited(value)
    if inspect.isasyncgen(value):
        value = awaited(_collected(value, characters))
    if isinstance(value, Iterator):
        value = list(itertools.islice(value, characters))
    if type(value) in (list, tuple):
        value = type(value)(map(awaited, value))
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    text = str(value)
    if not isinstance(value, str) and (found := _ADDRESS.search(text)):
        got = text[: found.end()][-_SHOWN:]
        raise TypeError(f"a tool must return a text or a value that has one, got {got}")
    return text


async def _collected(values: AsyncIterator[Any], most: int) -> list[Any]:
    found: list[Any] = []
    async for value in values:
        found.append(value)
        if len(found) >= most:
            break
    return found


def in_time(call: Callable[[], Any], seconds: float, name: str) -> Any:
    """The result of a call. Raises TimeoutError if it takes too long; its thread, of this name,
    continues, because Python cannot end it."""
    future: concurrent.futures.Future = concurrent.futures.Future()

    def work():
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True, name=name).start()
    return future.result(timeout=seconds)


def as_text(value: Any, characters: int) -> str:
    """A value as a text that every tokenizer accepts, truncated to `characters` with a note."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    # Tokenizers do not accept an unpaired surrogate.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) > characters:
        text = f"{text[:characters]}… ({characters} of {len(text)} characters)"
    return text
