"""How calls are written: what is found, and what is malformed."""

import pytest

from rlvr_jax.tools import calculator, fenced, json_calls, tags

JSON = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'


@pytest.mark.parametrize(
    ("style", "text", "tool", "arguments"),
    [
        (json_calls(), f"I ask.\n{JSON} and", "f", {"x": 1}),
        (json_calls(), '<tool_call>{"name": "f"}</tool_call>', "f", {}),
        (json_calls("call"), '<call>{"name": "g", "arguments": {}}</call>', "g", {}),
        (tags({"code": "python"}), "<code>print(1)</code>", "python", "print(1)"),
        (tags({"a": "one", "b": "two"}), "<b>y</b><a>x</a>", "two", "y"),
        (fenced(), "So\n```python\nprint(1)\n```", "python", "print(1)"),
    ],
)
def test_a_call_is_found(style, text, tool, arguments):
    call, end = style.find(text)
    assert (call.tool, call.arguments, call.wrong) == (tool, arguments, "")
    assert any(text[:end].endswith(stop) for stop in style.stops)


@pytest.mark.parametrize("style", [json_calls(), tags({"code": "python"}), fenced()])
@pytest.mark.parametrize(
    "text", ["", "plain words", "</code> </tool_call> ```", "<code", "``` x ```"]
)
def test_what_is_no_call_is_none(style, text):
    assert style.find(text) is None


@pytest.mark.parametrize(
    ("style", "text", "wrong"),
    [
        (json_calls(), '<tool_call>{"name": "f"', "is not closed"),
        (json_calls(), "<tool_call>f(1)</tool_call>", "is not JSON"),
        (json_calls(), "<tool_call>" + "[" * 100_000 + "</tool_call>", "is not JSON"),
        (json_calls(), "<tool_call>[1]</tool_call>", 'must have a "name"'),
        (json_calls(), '<tool_call>{"name": 1}</tool_call>', 'must have a "name"'),
        (
            json_calls(),
            '<tool_call>{"name": "f", "arguments": "x"}</tool_call>',
            "must be an object",
        ),
        (tags({"code": "python"}), "<code>print(1)", "is not closed"),
        (fenced(), "```python\nprint(1)", "is not closed"),
    ],
)
def test_a_malformed_call_says_why(style, text, wrong):
    call, _ = style.find(text)
    assert wrong in call.wrong


def test_a_style_explains_its_tools():
    told = json_calls().explain([calculator()])
    assert '"name": "calculator"' in told and "<tool_call>" in told
    assert "<sum>" in tags({"sum": "calculator"}).explain([calculator()])


def test_tags_without_a_tag_are_refused():
    with pytest.raises(ValueError, match="tags: tools must name a tag, got none"):
        tags({})
