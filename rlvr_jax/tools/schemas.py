"""JSON schemas of a function's arguments, in the form of transformers' `get_json_schema`.

In contrast to that function, an argument needs neither a type (default: text) nor a description.

Source: https://github.com/huggingface/transformers (utils/chat_template_utils.py).
"""

import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

_TYPES: dict[Any, str] = {
    int: "integer",
    float: "number",
    bool: "boolean",
    str: "string",
    type(None): "null",
    list: "array",
    tuple: "array",
    dict: "object",
}
_SECTION = re.compile(r"\n\s*(?:Args|Returns|Raises):\s*(?=\n|\Z)|\A(?:Args|Returns|Raises):\s*\n")
_ARGUMENTS = re.compile(
    r"(?:\A|\n)\s*Args:[ \t]*\n(.*?)\s*(?:\n\s*(?:Returns|Raises):|\Z)", re.DOTALL
)
_ARGUMENT = re.compile(r"([ \t]*)(\w+)(?:[ \t]*\([^()\n]*\))?:\s*(.*)")
_CHOICES = re.compile(r"\(choices:\s*(\[.*\])\)\s*\Z", re.IGNORECASE)


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a partial calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def named(function: Callable[..., Any]) -> str:
    """The name of a function, of the function of a partial, or of the class of an object."""
    function = _whole(function)
    return getattr(function, "__name__", type(function).__name__)


def described(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A Google-style docstring: the text before its sections, and the arguments."""
    text = inspect.getdoc(_whole(function)) or ""
    found = _ARGUMENTS.search(text)
    arguments: dict[str, str] = {}
    indent, name = "", ""
    for line in found[1].split("\n") if found else ():
        begins = _ARGUMENT.match(line)
        if begins and (not name or len(begins[1]) <= len(indent)):
            indent, name, arguments[begins[2]] = begins[1], begins[2], begins[3].strip()
        elif name:
            arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return _SECTION.split(text, maxsplit=1)[0].strip(), arguments


def parameters_of(function: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """The schema of each argument; an optional one has its "default". Raises ValueError for *args
    or **kwargs, whose names are unknown, and for a type that JSON does not have."""
    name, (_, texts) = named(function), described(function)
    hints = _hints(function)
    found: dict[str, dict[str, Any]] = {}
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise ValueError(
                f"tool: {name} must have named arguments, got {each}. A list or dict argument takes"
                " any number of values"
            )
        try:
            schema = _schema(hints[each.name]) if each.name in hints else {"type": "string"}
        except TypeError as error:
            raise ValueError(
                f"tool: {name}: {each.name} must have a type that JSON has (int, float, bool, str,"
                f" list, tuple, dict, None, Literal, Enum, unions of these), got {error}. Otherwise"
                " pass a schema: Tool(name, description, parameters, run)"
            ) from None
        if text := texts.get(each.name):
            choices = _CHOICES.search(text)
            if choices:
                schema["enum"] = json.loads(choices[1])
                text = text[: choices.start()].strip()
            schema["description"] = text
        if each.default is not each.empty:
            schema["default"] = _plain(each.default)
        found[each.name] = schema
    return found


def caller(function: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Returns a function that calls `function` with JSON arguments by name. It converts values to
    members of an Enum, and passes positional-only arguments in order."""
    ordered = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.kind is each.POSITIONAL_ONLY
    ]
    members = {
        name: hint
        for name, hint in _hints(function).items()
        if isinstance(hint, type) and issubclass(hint, Enum)
    }

    def call(arguments: Mapping[str, Any]) -> Any:
        given = {
            name: members[name](value) if name in members else value
            for name, value in arguments.items()
        }
        first = [given.pop(name) for name in ordered if name in given]
        return function(*first, **given)

    return call


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    function = _whole(function)
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(
            f"tool: {named(function)} must have types that are defined, {error}"
        ) from error


def _schema(hint: Any) -> dict[str, Any]:
    """The schema of a type; raises TypeError if JSON does not have it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice([member.value for member in hint], hint)
    if origin is typing.Literal:
        return _choice(list(arguments), hint)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    kind = hint if origin is None else origin
    if kind in _TYPES:
        schema: dict[str, Any] = {"type": _TYPES[kind]}
    elif isinstance(kind, type) and kind in (Sequence, Iterable):
        schema = {"type": "array"}
    elif isinstance(kind, type) and (kind is Mapping or typing.is_typeddict(kind)):
        schema = {"type": "object"}
    else:
        raise TypeError(getattr(hint, "__name__", str(hint)))
    if kind is tuple and arguments and arguments[-1] is not ...:
        schema["prefixItems"] = [_schema(each) for each in arguments]
    elif schema["type"] == "array" and arguments:
        schema["items"] = _schema(arguments[0])
    elif schema["type"] == "object" and len(arguments) == 2:
        schema["additionalProperties"] = _schema(arguments[1])
    return schema


def _union(kinds: Sequence[Any]) -> dict[str, Any]:
    """The schema of a union of types; None among them makes it nullable."""
    parts = [_schema(kind) for kind in kinds if kind is not type(None)]
    if len(parts) == 1:
        schema = parts[0]
    elif all(part.keys() == {"type"} and isinstance(part["type"], str) for part in parts):
        names = sorted({part["type"] for part in parts})
        schema = {"type": names[0] if len(names) == 1 else names}
    else:
        schema = {"anyOf": parts}
    return schema | ({"nullable": True} if type(None) in kinds else {})


def _choice(values: list[Any], hint: Any) -> dict[str, Any]:
    if not values or any(
        type(value) not in (int, float, str, bool, type(None)) for value in values
    ):
        raise TypeError(str(hint))
    kinds = list(dict.fromkeys(_TYPES[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def _plain(default: Any) -> Any:
    """A default as JSON; as text if JSON does not have it."""
    if isinstance(default, Enum):
        return _plain(default.value)
    try:
        return json.loads(json.dumps(default))
    except (TypeError, ValueError):
        return str(default)
