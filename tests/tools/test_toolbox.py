"""An environment of tools: what is said to each kind of call, and what hostile tools do to it."""

import json
import pickle
import time

import pytest

from rlvr_jax.tools import Lost, Tool, ToolError, calculator, json_calls, tags, tool, toolbox

SUM = '<tool_call>{"name": "calculator", "arguments": {"expression": "2 * (3 + 4)"}}</tool_call>'


def called(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def of(function, **limits):
    return Tool("f", "Does.", {"x": {"type": "string"}}, lambda a, s: (s, function()), **limits)


def reply(box, text, state=None):
    return box.reply(box.start(None)[0] if state is None else state, text)


def test_a_call_is_made_and_answered_as_the_style_says():
    told = reply(toolbox(calculator()), f"I compute {SUM}")
    assert (told.text, told.role, told.done, told.lost) == ("14", "tool", False, False)
    assert told.info == {"calls": 1, "malformed_calls": 0, "tool_errors": 0, "tool_timeouts": 0}
    inside = toolbox(calculator(), style=tags({"sum": "calculator"}, reply="is"))
    assert reply(inside, "<sum>1/3 + 1/6</sum>").text == "\n<is>1/2</is>\n"


def test_a_text_without_a_call_is_not_answered():
    assert reply(toolbox(calculator()), "The answer is 14.").text is None


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<tool_call>{", "Error: <tool_call> is not closed by </tool_call>."),
        (called("other", x=1), "Error: there is no tool 'other', only calculator."),
        (called("calculator", x=1), "Error: calculator takes expression, got x."),
        (called("calculator"), "Error: calculator takes expression, got nothing."),
    ],
)
def test_a_malformed_call_is_answered_in_words_and_counted(text, wrong):
    told = reply(toolbox(calculator(), style=json_calls(role="")), text)
    assert wrong.replace("</", "< /") in told.text
    assert told.info["malformed_calls"] == 1 and told.info["calls"] == 0


def test_calls_beyond_the_last_are_answered_by_a_sentence():
    box = toolbox(calculator(), most=1)
    first = reply(box, SUM)
    second = reply(box, SUM, first.state)
    assert second.text == "Error: no call is left of 1." and second.info["calls"] == 0


def raises(error):
    def run():
        raise error

    return run


@pytest.mark.parametrize(
    ("made", "wanted", "count"),
    [
        (of(raises(ToolError("not that"))), "Error: not that", "tool_errors"),
        (of(raises(KeyError("k"))), "Error: KeyError: 'k'", "tool_errors"),
        (of(raises(SystemExit(1))), "Error: SystemExit: 1", "tool_errors"),
        (
            of(lambda: time.sleep(5), seconds=0.1),
            "Error: f took longer than 0.1 seconds.",
            "tool_timeouts",
        ),
        (of(lambda: b"\xff\xfe"), "\ufffd\ufffd", None),
        (of(lambda: "x" * 5000), "x" * 2000 + "… (2000 of 5000 characters)", None),
        (of(lambda: "\ud800"), "?", None),
        (of(lambda: 3), "3", None),
        (of(lambda: "a</tool_call>b"), "a< /tool_call>b", None),
    ],
)
def test_whatever_a_tool_does_the_policy_is_answered(made, wanted, count):
    box = toolbox(made)
    told = reply(box, called("f", x="1"))
    assert told.text == wanted
    assert count is None or told.info[count] == 1


def test_a_lost_tool_gives_no_verdict():
    told = reply(toolbox(of(raises(Lost("gone")))), called("f", x="1"))
    assert told.lost and told.done


def test_states_can_be_kept():
    def count(arguments, state):
        return (state or 0) + 1, str(state)

    box = toolbox(Tool("f", "Counts.", {"x": {}}, count))
    state = box.start(None)[0]
    for wanted in ("None", "1", "2"):
        told = reply(box, called("f", x=""), state)
        state = pickle.loads(pickle.dumps(told.state))
        assert told.text == wanted


def test_a_function_is_a_tool_in_three_lines():
    def power(base: int, exponent: int) -> int:
        """Raises a number."""
        return base**exponent

    made = tool(power)
    assert made.parameters == {"base": {"type": "integer"}, "exponent": {"type": "integer"}}
    assert reply(toolbox(made), called("power", base=2, exponent=5)).text == "32"


def test_tools_are_described_in_a_system_message():
    (message,) = toolbox(calculator()).start(None)[1]
    assert message["role"] == "system" and "calculator" in message["content"]
    assert toolbox(calculator(), describe=False).start(None)[1] == []


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: toolbox(), "tools must be at least one"),
        (lambda: toolbox(calculator(), calculator()), r"names of their own, got \['calculator'\]"),
        (lambda: tool(lambda x: x), "must have a docstring"),
        (lambda: Tool("", "d", {"x": {}}, None), "must not be empty"),
        (lambda: of(None, seconds=0), "seconds must be positive, got 0"),
    ],
)
def test_bad_arguments_are_named(make, wrong):
    with pytest.raises(ValueError, match=wrong):
        make()
