"""Grades hold plain numbers, whatever a task computes with."""

import dataclasses
import json

import numpy as np
import pytest

from rlvr_jax.tasks import Grade, Prompt, Task


@pytest.mark.parametrize("reward", [None, np.float64(0.5), np.int32(1)])
def test_a_grade_of_numpy_numbers_goes_through_json(reward):
    info = {"words": np.int64(3), "legal": np.bool_(True)}
    grade = Grade(np.float32(1), reward, np.bool_(False), info)
    assert Grade(**json.loads(json.dumps(dataclasses.asdict(grade)))) == grade
    assert grade == Grade(1.0, reward, False, {"words": 3.0, "legal": 1.0})
    assert grade.reward == (1 if reward is None else reward)


def test_rewards_are_a_sequence_of_names():
    with pytest.raises(ValueError, match="Task 'own': rewards must be a sequence of names"):
        Task("own", [Prompt("a")], [Prompt("b")], lambda *given: [], rewards="outcome")


@pytest.mark.parametrize(("given", "kept"), [(" 7\n", "7"), (" ", None), ("", None), (None, None)])
def test_an_answer_of_white_space_is_none(given, kept):
    assert Grade(0.0, answer=given).answer == kept
