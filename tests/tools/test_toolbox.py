"""An environment of tools: what is said to each kind of call, and what hostile tools do to it."""

import asyncio
import functools
import itertools
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


async def later(x: int):
    """Doubles."""
    await asyncio.sleep(0.001)
    return 2 * x


class Service:
    async def method(self, x: int):
        """Doubles."""
        return await later(x)

    async def __call__(self, x: int):
        """Doubles."""
        return 2 * x

    __doc__ = "Doubles."


def coroutine(x: int):
    """Returns what is to be awaited."""
    return later(x)


def squares(x: int):
    """Squares."""
    yield from (n * n for n in range(x))


async def stream(x: int):
    """Counts."""
    for n in range(x):
        yield n


def endless(x: int):
    """Never ends."""
    return itertools.repeat(x)


async def fails(x: int):
    """Raises."""
    raise ToolError("not now")


def returns(value):
    """A function of an argument that nobody reads."""

    def f(x: int):
        """Returns it."""
        return value

    return f


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (later, "8"),
        (Service().method, "8"),
        (Service(), "8"),
        (coroutine, "8"),
        (functools.partial(later), "8"),
        (squares, "[0, 1, 4, 9]"),
        (stream, "[0, 1, 2, 3]"),
        (returns(map(str, [1, 2])), "['1', '2']"),
        (returns(zip([1], [2], strict=True)), "[(1, 2)]"),
        (returns(reversed([1, 2])), "[2, 1]"),
        (returns("ä".encode()), "ä"),
        (returns(bytearray(b"ab")), "ab"),
        (returns(memoryview(b"ab")), "ab"),
        (returns(None), "None"),
        (returns({"a": [1]}), "{'a': [1]}"),
        (returns("<f at 0x12>"), "<f at 0x12>"),
        (returns(3.5), "3.5"),
    ],
)
def test_what_a_function_returns_is_awaited_and_shown_as_text(function, wanted):
    made = tool(function, name="f")
    told = reply(toolbox(made), called("f", x=4))
    assert (told.text, told.info["tool_errors"]) == (wanted, 0)


def test_a_list_of_coroutines_is_awaited():
    def both(x: int):
        """Doubles twice."""
        return [later(x), later(x + 1)]

    assert tool(both).run({"x": 1}, None)[1] == "[2, 4]"


def test_an_iterator_without_end_is_shown_as_far_as_there_is_room():
    told = reply(toolbox(tool(endless)), called("endless", x=4))
    assert told.text.startswith("[4, 4, ") and "(2000 of" in told.text


@pytest.mark.parametrize("value", [object(), [object()], len.__call__, lambda: 3, (1, object())])
def test_a_value_that_has_no_text_is_an_error(value):
    told = reply(toolbox(tool(returns(value))), called("f", x=4))
    assert "must return a text or a value that has one" in told.text
    assert told.info["tool_errors"] == 1


def test_a_tool_may_be_a_coroutine_and_raise_in_it():
    async def run(arguments, state):
        return (state or 0) + 1, later(state or 0)

    box = toolbox(Tool("f", "Doubles.", {"x": {}}, run), tool(fails))
    first = reply(box, called("f", x=""))
    assert (first.text, reply(box, called("f", x=""), first.state).text) == ("0", "2")
    assert reply(box, called("fails", x=1)).text == "Error: not now"


def test_a_coroutine_that_takes_too_long_is_told_so():
    async def slow(x: int):
        """Sleeps."""
        await asyncio.sleep(60)

    told = reply(toolbox(tool(slow, seconds=0.1)), called("slow", x=1))
    assert told.text == "Error: slow took longer than 0.1 seconds."


def test_a_coroutine_is_awaited_where_a_loop_runs():
    async def notebook():
        return tool(later).run({"x": 4}, None)[1]

    assert asyncio.run(notebook()) == "8"


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
        (lambda: toolbox(calculator(), calculator()), r"different names, got \['calculator'\]"),
        (lambda: tool(lambda x: x), "must have a docstring"),
        (lambda: Tool("", "d", {"x": {}}, None), "must not be empty"),
        (lambda: of(None, seconds=0), "seconds must be positive, got 0"),
    ],
)
def test_bad_arguments_are_named(make, wrong):
    with pytest.raises(ValueError, match=wrong):
        make()
