"""SKILL0: skills in the prompt at first, fewer from phase to phase, and none in the end."""

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.skill0 import SKILLS, development, most_skills, next_active
from rlvr_jax.tasks import Grade, load


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


class Heeding(numpy_actor.NumpyActor):
    """An actor whose responses to odd prompts are incorrect under a skill, and correct without.

    Those to even prompts are the contrary."""

    def grade(self, batch):
        aided = [request.view.label != "plain" for request in batch.requests]
        odd = [request.prompt.kind == "odd" for request in batch.requests]
        return batch.graded([Grade(float(a != o)) for a, o in zip(aided, odd, strict=True)])


def test_a_skill_that_did_harm_is_withdrawn_and_one_that_helped_stays():
    given = {"skills": "general=a|even=b|odd=c|other=d", "sets": (3, 3, 0), "every": 1}
    chain = recipe("skill0", **given, rated=4).experience
    found = numpy_actor.walk(chain, Heeding(), 4)
    # `other` is no kind of the task.
    assert [metrics["active_skills"] for _, metrics, _ in found[:3]] == [3, 2, 2]
    assert [metrics["harmful_skills"] for _, metrics, _ in found[:3]] == [1, 0, 0]
    state = found[0][2]["withdraw_skills"]
    assert state.active.tolist() == [True, True, False, False]
    np.testing.assert_allclose(state.gain, [0, 1, -1, 0])


def test_development_prompts_are_rated_and_not_trained():
    chain = recipe("skill0", skills="general=a|even=b", sets=(2, 2), every=2, rated=4).experience
    own = numpy_actor.setting(chain)
    held, instead = development(own, 4)
    assert sorted(own.task.train[number].kind for number in held) == ["even"] * 2 + ["odd"] * 2
    assert all(own.task.train[a].kind == own.task.train[b].kind for a, b in instead.items())
    for step, (found, _, _) in enumerate(numpy_actor.walk(chain, steps=6, own=own)):
        assert not {request.number for request in found.batch.requests} & {*held}
        requests = [request for batch in found.seen for request in batch.requests]
        rated = {request.number for request in requests if request.rating}
        assert rated == ({*held} if step % 2 else set())


def test_the_default_table_has_the_kinds_of_arithmetic():
    names = {line.partition("=")[0] for line in SKILLS.split("|")}
    tasks = load("arithmetic"), load("arithmetic:hard")
    assert names == {"general", *(prompt.kind for task in tasks for prompt in task.train)}


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
