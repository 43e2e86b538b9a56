"""SKILL0: skills in the prompt at first, fewer from phase to phase, and none in the end."""

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.methods.agents.skill0 import most_skills, next_active


def test_phases_allow_fewer_and_fewer_skills():
    steps = (1, 60, 61, 120, 121, 180)
    assert [most_skills(step, 180, 10, (6, 3, 0)) for step in steps] == [6, 6, 3, 3, 0, 0]
    gain = {"a": 0.1, "b": 0.0, "c": -0.05, "d": 0.3}
    assert next_active(gain, 3) == ["general", "d", "a"]
    assert next_active(gain, 6) == ["general", "d", "a", "b"]
    assert next_active(gain, 1) == ["general"] and next_active(gain, 0) == []


def test_skills_are_shown_rated_and_taken_away():
    given = {"skills": "general=a|even=longer text|odd=b", "sets": (3, 1, 0), "every": 1}
    found = walked("skill0", 10, **given, rated=6)
    shown = []
    for collected, told, _ in found:
        labels = {request.view.label for request in collected.batch.requests}
        assert len(labels) == 1
        shown.append(told["active_skills"])
        assert ("plain" in labels) == (told["active_skills"] == 0)
        rated = {
            request.view.label
            for batch in collected.seen
            for request in batch.requests
            if request.rating
        }
        assert len(rated) == (2 if told["active_skills"] else 0)
    # Ten steps of three phases: three each, the rest of the last.
    assert shown[0] == 3 and max(shown[3:6]) <= 1 and shown[6:] == [0] * 4


@pytest.mark.slow
def test_training_with_skills_that_are_withdrawn(tmp_path):
    given = ("skills=general=3 +|hard=(", "sets=2,0", "every=1", "rated=8", "rating_samples=1")
    steps = training_runs.on_brackets("skill0", tmp_path, steps=4, hyperparameters=given)
    shown = training_runs.values(steps, "experience/active_skills")
    assert shown[0] == 2 and shown[-1] == 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.slow
def test_training_with_skills_in_turns_with_a_calculator(tmp_path):
    given = ("skills=general=;|product=[*]", "sets=2,0", "every=1", "rated=16", "rating_samples=2")
    steps = training_runs.on_brackets(
        "skill0",
        tmp_path,
        "calculations:response_tokens=20",
        steps=4,
        temperature=1.4,
        hyperparameters=(*given, "max_turns=2"),
    )
    shown, answers, turns, reward, outcome = (
        np.array(training_runs.values(steps, name))
        for name in (
            *(f"experience/{name}" for name in ("active_skills", "answers", "turns")),
            *("reward", "outcome"),
        )
    )
    assert shown[0] == 2 and shown[-1] == 0
    assert np.all(turns > answers) and max(training_runs.values(steps, "experience/calls")) > 0
    # Answers of the two ratings, with and without skills, and those that are learned from.
    np.testing.assert_array_equal(answers, np.where(shown > 0, 64 + 2 * 16 * 2, 64))
    # An invalid action costs a tenth.
    paid = 64 * (outcome - reward) / 0.1
    np.testing.assert_allclose(paid, np.round(paid), atol=1e-3)
    assert np.all(paid > -0.5) and paid.max() > 0.5
    assert max(training_runs.values(steps, "gradient_norm")) > 0
