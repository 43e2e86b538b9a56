"""Schemas of functions: those of transformers where it has one, and JSON's where it has none."""

import functools
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, TypedDict

import pytest
from transformers.utils import get_json_schema

from rlvr_jax.tools import Tool, json_calls, tags, tool, toolbox


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(TypedDict):
    name: str


class Custom:
    pass


def of(hint, default=...):
    """A documented function of one argument of a type."""

    def f(x):
        return x

    f.__annotations__ = {"x": hint, "return": str}
    f.__defaults__ = None if default is ... else (default,)
    f.__doc__ = (
        "Does it.\n\nAt once.\n\nArgs:\n    x: the thing,\n        all of it\n\nReturns:\n    it"
    )
    return f


LIKE_TRANSFORMERS = [
    *(int, float, str, bool, Any, list, dict, tuple, None),
    *(list[int], list[str], list[list[float]], list[dict[str, int]], list[Any]),
    *(dict[str, int], dict[str, list[bool]], dict[str, Any]),
    *(tuple[int, str], tuple[int, int, int]),
    *(int | None, str | None, list[int] | None, Literal["a", "b"] | None),
    *(int | str, float | int, str | list[int], int | str | None),
    *(Literal["a", "b"], Literal[1, 2, 3], Literal["a", 1, None], Literal[True]),
    Colour,
]


@pytest.mark.parametrize("hint", LIKE_TRANSFORMERS, ids=str)
def test_a_schema_is_that_of_transformers(hint):
    function = of(hint)
    wanted = get_json_schema(function)["function"]
    wanted.pop("return", None)
    assert tool(function).schema == wanted


# By hand, from the specification of JSON Schema.
BY_HAND = [
    (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
    (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (Place, {"type": "object"}),
    ("list[int]", {"type": "array", "items": {"type": "integer"}}),
    ("int | None", {"type": "integer", "nullable": True}),
]


@pytest.mark.parametrize(("hint", "wanted"), BY_HAND, ids=str)
def test_a_schema_of_a_further_type(hint, wanted):
    schema = tool(of(hint)).schema["parameters"]
    schema["properties"]["x"].pop("description")
    assert schema == {"type": "object", "properties": {"x": wanted}, "required": ["x"]}


@pytest.mark.parametrize(
    ("default", "told"),
    [
        (None, None),
        (3, 3),
        ("a", "a"),
        ((1, 2), [1, 2]),
        ({}, {}),
        (Colour.RED, "red"),
        ({1}, "{1}"),
    ],
)
def test_an_argument_with_a_default_may_be_left_out(default, told):
    made = tool(of(Any, default))
    assert "required" not in made.schema["parameters"]
    assert made.parameters["x"]["default"] == told
    json.dumps(made.schema)
    assert made.run({}, None)[1] == str(default)


@pytest.mark.parametrize(
    ("hint", "wrong"),
    [
        (Custom, "x must have a type that JSON has .*, got Custom"),
        (list[Custom], "x must have a type that JSON has .*, got Custom"),
        (set[int], "x must have a type that JSON has"),
        (bytes, "x must have a type that JSON has .*, got bytes"),
        ("Missing", "must have types that are defined"),
    ],
)
def test_a_type_that_json_does_not_have_is_refused(hint, wrong):
    with pytest.raises(ValueError, match=wrong):
        tool(of(hint))


def any_number(*xs: int):
    """Adds."""


def any_names(x: int, **more: int):
    """Adds."""


@pytest.mark.parametrize("function", [any_number, any_names])
def test_arguments_without_names_are_refused(function):
    with pytest.raises(ValueError, match=r"must have named arguments, got \*"):
        tool(function)


def total(xs: list[int], scale: int = 1) -> int:
    """Adds numbers.

    Args:
        xs (list[int]): the numbers
        scale: of the sum
    """
    return sum(xs) * scale


def before(x: int, /, y: int = 2) -> int:
    """Adds."""
    return x + y


def colour(x: Colour) -> str:
    """Names a colour."""
    return x.name


class Counter:
    """Counts."""

    def __call__(self, x: int) -> int:
        return x + 1

    def method(self, x: list[int]) -> int:
        """Counts."""
        return len(x)


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (total, {"xs": [1, 2], "scale": 3}, "9"),
        (total, {"xs": [1, 2]}, "3"),
        (before, {"x": 1}, "3"),
        (before, {"x": 1, "y": 5}, "6"),
        (colour, {"x": "blue"}, "BLUE"),
        (functools.partial(total, scale=2), {"xs": [1, 2]}, "6"),
        (Counter(), {"x": 1}, "2"),
        (Counter().method, {"x": [1, 2]}, "2"),
    ],
)
def test_a_call_gives_a_function_what_it_takes(function, arguments, text):
    made = tool(function)
    call = json.dumps({"name": made.name, "arguments": arguments})
    box = toolbox(made)
    reply = box.reply(box.start(None)[0], f"<tool_call>{call}</tool_call>")
    assert (reply.text, reply.info["tool_errors"], reply.info["malformed_calls"]) == (text, 0, 0)


def test_what_a_docstring_says_is_in_the_schema():
    assert tool(total).schema == {
        "name": "total",
        "description": "Adds numbers.",
        "parameters": {
            "type": "object",
            "properties": {
                "xs": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "the numbers",
                },
                "scale": {"type": "integer", "description": "of the sum", "default": 1},
            },
            "required": ["xs"],
        },
    }


@pytest.mark.parametrize(
    ("schema", "text", "wanted"),
    [
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "integer"}, " 7\n", 7),
        ({"type": ["integer", "string"]}, "7", "7"),
        ({"type": "string"}, "7", "7"),
        ({}, "7", "7"),
        ({"type": "object"}, "{no", "{no"),
    ],
)
def test_a_text_alone_is_read_as_json_where_the_tool_wants_no_text(schema, text, wanted):
    made = Tool("f", "Does.", {"x": schema}, lambda a, s: (s, repr(a["x"])))
    box = toolbox(made, style=tags({"f": "f"}))
    assert (
        box.reply(box.start(None)[0], f"<f>{text}</f>").text == f"\n<output>{wanted!r}</output>\n"
    )


def test_a_schema_is_told_as_json():
    told = json_calls().explain([tool(total), tool(colour)])
    assert '"items": {"type": "integer"}' in told and '"required": ["xs"]' in told
