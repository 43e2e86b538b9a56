"""Grades hold plain numbers, whatever a task computes with."""

import dataclasses
import json

import numpy as np
import pytest

from rlvr_jax.tasks import Grade, Prompt, Response, Task, graded_one_by_one, load


@pytest.mark.parametrize("reward", [None, np.float64(0.5), np.int32(1)])
def test_a_grade_of_numpy_numbers_goes_through_json(reward):
    info = {"words": np.int64(3), "legal": np.bool_(True)}
    grade = Grade(np.float32(1), reward, np.bool_(False), info)
    assert Grade(**json.loads(json.dumps(dataclasses.asdict(grade)))) == grade
    assert grade == Grade(1.0, reward, False, {"words": 3.0, "legal": 1.0})
    assert grade.reward == (1 if reward is None else reward)


def test_a_grade_without_a_verdict_goes_through_json():
    grade = Grade(None, info={"words": 3})
    assert Grade(**json.loads(json.dumps(dataclasses.asdict(grade)))) == grade
    assert (grade.outcome, grade.reward) == (None, None)


def test_a_reward_without_a_verdict_is_refused():
    with pytest.raises(ValueError, match="reward must be None where outcome is None, got 0"):
        Grade(None, 0.0)


def graded(value):
    verify = graded_one_by_one(lambda prompt, response: value)
    return verify([Prompt("1 + 1?")], [Response("2")])[0].outcome


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (True, 1),
        (0.5, 0.5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), 1),
        (np.int64(1), 1),
        (np.array(1.0), 1),
        (None, None),
    ],
)
def test_rewards_are_numbers_of_python_or_numpy_or_none(value, outcome):
    assert graded(value) == outcome


@pytest.mark.parametrize(
    "value", ["1", b"1", float("nan"), np.float32("inf"), 10**400, [1]], ids=lambda x: repr(x)[:9]
)
def test_what_is_no_finite_number_is_no_reward(value):
    with pytest.raises(ValueError, match=r"must be a finite number, got .* for prompt"):
        graded(value)


def test_rewards_are_a_sequence_of_names():
    with pytest.raises(ValueError, match="Task 'own': rewards must be a sequence of names"):
        Task("own", [Prompt("a")], [Prompt("b")], lambda *given: [], rewards="outcome")


@pytest.mark.parametrize(("given", "kept"), [(" 7\n", "7"), (" ", None), ("", None), (None, None)])
def test_an_answer_of_white_space_is_none(given, kept):
    assert Grade(0.0, answer=given).answer == kept


def task_of(prompt, **fields):
    return Task("own", [prompt], [Prompt("held out")], lambda *given: [], **fields)


def test_a_prompt_has_nothing_but_its_text_by_itself():
    prompt = Prompt("a")
    assert (prompt.messages, prompt.solution, prompt.hints, prompt.meta) == ((), (), (), {})
    assert hash(prompt) == hash(Prompt("a"))


@pytest.mark.parametrize("field", ["messages", "solution", "hints"])
def test_a_text_is_no_sequence_of_texts(field):
    with pytest.raises(ValueError, match=f"Prompt: {field} must be a sequence, got the text 'b'"):
        Prompt("a", **{field: "b"})


@pytest.mark.parametrize("field", ["solution", "hints"])
def test_steps_and_hints_are_texts(field):
    with pytest.raises(ValueError, match=f"Prompt: {field} must be texts, got 3"):
        Prompt("a", **{field: ["b", 3]})


@pytest.mark.parametrize(
    "message",
    ["hello", {"role": "system"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}],
)
def test_a_message_has_a_role_and_content(message):
    with pytest.raises(ValueError, match=r"Prompt: messages must be like .*, got"):
        Prompt("a", messages=[message])


FURTHER = dict(
    messages=[{"role": "system", "content": "b"}], solution=["b"], hints=["b"], meta={"level": 1}
)


@pytest.mark.parametrize("field", FURTHER)
def test_a_fingerprint_covers_further_fields_where_they_are_used(field):
    plain = task_of(Prompt("a")).fingerprint()
    used = task_of(Prompt("a", **{field: FURTHER[field]})).fingerprint()
    empty = task_of(Prompt("a", **{field: type(FURTHER[field])()})).fingerprint()
    assert used != plain == empty
    assert (
        len({task_of(Prompt("a", **{name: FURTHER[name]})).fingerprint() for name in FURTHER}) == 4
    )


@pytest.mark.parametrize("field", FURTHER)
def test_a_fingerprint_leaves_out_what_is_derived(field):
    prompt = Prompt("a", **{field: FURTHER[field]})
    assert task_of(prompt, derived=[field]).fingerprint() == task_of(Prompt("a")).fingerprint()


@pytest.mark.parametrize("derived", ["solution", ["gold"]])
def test_derived_are_names_of_further_fields(derived):
    with pytest.raises(ValueError, match="Task 'own': derived must be among messages, solution"):
        task_of(Prompt("a"), derived=derived)


# Of the commit before prompts had further fields: runs of then resume.
OLDER = {
    "brackets": "3a4d8d55226a3ded",
    "operators": "ea158744b8ab7de5",
    "arithmetic": "e98ac3b4757708c2",
    "arithmetic:hard": "35a11ad65ee7779b",
}


@pytest.mark.parametrize("name", OLDER)
def test_runs_of_before_further_fields_resume(name):
    assert load(name).fingerprint() == OLDER[name]


@pytest.mark.parametrize(
    ("fields", "message"),
    (
        ({"info": {"len": None}}, r"info\['len'\] must be a number of Python or numpy, got None"),
        ({"info": {"len": "3"}}, r"info\['len'\] must be a number .*, got '3'"),
        ({"info": {"len": [3]}}, r"info\['len'\] must be a number .*, got \[3\]"),
        ({"info": [3]}, r"info must be numbers by name, got \[3\]"),
        ({"outcome": "yes"}, "outcome must be a number .*, got 'yes'"),
        ({"outcome": [1, 2]}, r"outcome must be a number .*, got \[1, 2\]"),
        ({"reward": 10**400}, "reward must be a number .*, got 1000"),
        ({"answer": 7}, "answer must be a text, got 7"),
        ({"stage": None}, "stage must be a text, got None"),
    ),
)
def test_what_a_grade_wants_is_said(fields, message):
    with pytest.raises(ValueError, match=f"Grade: {message}"):
        Grade(**{"outcome": 1.0, **fields})


def test_a_grade_tells_where_it_was_decided():
    grade = Grade(1.0, stage="exact")
    assert Grade(**json.loads(json.dumps(dataclasses.asdict(grade)))).stage == "exact"


def test_a_fingerprint_covers_integers_of_any_length():
    tests = [[{"kind": "call", "args": [10**5000 + n], "value": n}] for n in range(2)]
    found = {task_of(Prompt("a", answer, meta={"n": 10**5000})).fingerprint() for answer in tests}
    assert len(found) == 2
