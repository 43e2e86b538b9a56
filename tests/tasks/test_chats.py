"""Chats in data: what a message has beside its content, and what follows the user's last one."""

import json

import pytest

from rlvr_jax.experience.prompts import continued
from rlvr_jax.tasks import Prompt, Response, from_rows

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "times", "arguments": {"a": 6, "b": 7}},
}
ASKED = {"role": "user", "content": "6*7?"}
REPLY_LOG = {"role": "tool", "tool_call_id": "c1", "name": "times", "content": "42"}
LAST = {"role": "user", "content": "plus one?"}


def calls(**changes):
    return {"role": "assistant", "content": None, "tool_calls": [{**CALL, **changes}]}


def read(messages, column="prompt"):
    """The prompt of a row, and the notes of its task."""
    rows = [{column: messages, "answer": 43}, {column: "1+1?", "answer": 2}]
    task = from_rows(rows, instruction="", columns={"prompt": column})
    return next(p for p in (*task.train, *task.test) if p.answer == "43"), task.notes


CALLS = [
    [ASKED, calls(), REPLY_LOG, LAST],
    [ASKED, calls(function={**CALL["function"], "arguments": '{"a": 6, "b": 7}'}), REPLY_LOG, LAST],
    [ASKED, {"role": "assistant", "tool_calls": [CALL]}, REPLY_LOG, LAST],
    [ASKED, {"from": "gpt", "value": "", "tool_calls": [CALL]}, REPLY_LOG, LAST],
    json.dumps([ASKED, calls(), REPLY_LOG, LAST]),
]


@pytest.mark.parametrize("messages", CALLS)
def test_calls_of_tools_in_a_history_stay(messages):
    prompt, _ = read(messages)
    asked, called, told = prompt.messages
    assert (prompt.text, asked["content"], told) == ("plus one?", "6*7?", REPLY_LOG)
    assert (called["content"], called["tool_calls"]) == ("", [CALL])


def test_a_call_in_the_old_form_is_a_call():
    old = {"role": "assistant", "content": None, "function_call": CALL["function"]}
    answer = {"role": "function", "name": "times", "content": "42"}
    prompt, _ = read([ASKED, old, answer, LAST])
    assert prompt.messages[1]["tool_calls"] == [{"type": "function", "function": CALL["function"]}]
    assert prompt.messages[2] == {"role": "tool", "name": "times", "content": "42"}


@pytest.mark.parametrize("wrong", [["x"], [{"function": {"arguments": {}}}], [{"name": 3}]])
def test_a_call_without_a_name_leaves_its_row_out(wrong):
    rows = [{"prompt": [ASKED, {"role": "assistant", "tool_calls": wrong}, LAST], "answer": 43}]
    rows += [{"prompt": f"{n}+1?", "answer": n + 1} for n in range(3)]
    with pytest.warns(UserWarning, match="1 of 4 rows were left out: .*tool_calls without a name"):
        from_rows(rows)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_in_a_history_stays(name):
    said = {"role": "assistant", "content": "42", name: "Six sevens."}
    assert read([ASKED, said, LAST])[0].messages[1] == said


@pytest.mark.parametrize("name", ["refusal", "audio", "weight"])
def test_what_of_a_message_is_not_read_is_counted(name):
    prompt, notes = read([ASKED, {"role": "assistant", "content": "42", name: "x"}, LAST])
    assert name not in prompt.messages[1]
    assert f"1 have messages with {name}, which is not shown" in " ".join(notes)


PREFILLS = [
    ([ASKED, {"role": "assistant", "content": "It is "}], "It is "),
    ([ASKED, {"role": "assistant", "content": "<think>\n"}], "<think>\n"),
    (
        [
            ASKED,
            {"role": "assistant", "content": "42"},
            LAST,
            {"role": "assistant", "content": "So"},
        ],
        "So",
    ),
    ([ASKED, calls(), REPLY_LOG, {"role": "assistant", "content": "So"}], "So"),
    (
        [{"role": "system", "content": "Be brief."}, ASKED, {"role": "assistant", "content": "A:"}],
        "A:",
    ),
]


@pytest.mark.parametrize(("messages", "prefill"), PREFILLS)
def test_a_prompt_that_ends_with_the_assistant_is_continued(messages, prefill):
    prompt, notes = read(messages)
    assert prompt.prefill == prefill
    assert [turn["role"] for turn in prompt.chat] == [turn["role"] for turn in messages]
    assert "1 end with a turn of the assistant, which the response continues" in " ".join(notes)
    whole = continued(prompt, Response("43", prompt_tail=f"user 6*7? assistant {prefill}"))
    assert (whole.text, whole.prompt_tail) == (f"{prefill}43", "user 6*7? assistant ")


def test_a_prompt_that_ends_with_a_tool_is_answered_after_it():
    prompt, _ = read([ASKED, calls(), REPLY_LOG])
    assert prompt.prefill == "" and prompt.text == "6*7?"
    assert [turn["role"] for turn in prompt.chat] == ["user", "assistant", "tool"]
    assert continued(prompt, Response("43")) == Response("43")


@pytest.mark.parametrize("column", ["messages", "conversations"])
def test_the_end_of_a_whole_conversation_is_not_shown(column):
    prompt, notes = read([ASKED, {"role": "assistant", "content": "43"}], column)
    assert (prompt.messages, prompt.prefill) == ((), "")
    assert "1 end with turns after the user's last one, which are not shown" in " ".join(notes)


def test_messages_after_the_users_are_the_last():
    after = {"role": "assistant", "content": "A", "after": True}
    assert Prompt("?", messages=[after]).prefill == "A"
    with pytest.raises(ValueError, match='messages with "after" must be the last ones'):
        Prompt("?", messages=[after, {"role": "user", "content": "x"}])
