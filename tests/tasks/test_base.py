"""Grades hold plain numbers, whatever a task computes with."""

import dataclasses
import json

import numpy as np
import pytest

from rlvr_jax.tasks import Grade, Prompt, Response, Task, graded_one_by_one


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
