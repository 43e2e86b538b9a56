"""SCOPE: wrong answers whose beginning is right."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.parts import StepContext
from rlvr_jax.experience.stages.rewards.score_steps import bound_of_steps
from rlvr_jax.experience.stages.rounds.first_errors import (
    first_incorrect_step,
    repairable,
    tokens_before,
)
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.scope import _spared
from rlvr_jax.objectives import TEACHER
from rlvr_jax.tasks import Grade
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.hinted_brackets import path_scores

PATHS = "hinted_brackets:train=64,judge_paths=true"


def test_the_first_wrong_step_is_found_and_what_stands_before_it():
    step = np.array([[0, 0, 2, 2, -1], [0, 1, 1, 2, 2], [0, 0, 0, 0, 0]])
    score = np.array([[0, 1, 0, -1, 0], [-1, 0, -1, 0, 0], [0, 0, 0, 0, 1.0]])
    mask = np.ones(step.shape, bool)
    found = first_incorrect_step(step, score, mask, 0.0)
    assert found.tolist() == [2, 0, -1]
    assert tokens_before(step, mask, found).tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("scores", "given", "bound"),
    [((0, 1), None, 0.5), ((-1, 1), None, 0), ((0, 1), 0.2, 0.2), ((0, 1), 1, 1)],
)
def test_the_bound_is_the_middle_of_the_scores_unless_it_is_given(scores, given, bound):
    assert bound_of_steps(given, replace(numbered_task(), step_range=scores)) == bound


@pytest.mark.parametrize("never", [0.0, -0.5, 1.5])
@pytest.mark.parametrize(
    ("method", "more"), [("scope", {}), ("intervention_training", {"finder": "scores"})]
)
def test_a_bound_that_decides_nothing_is_refused_before_the_first_step(method, more, never):
    chain = recipe(method, incorrect_below=never, **more).experience
    wanted = (
        r"incorrect_below must be in \(0, 1\], .*, got .*incorrect_below=0.5, steps of the lower"
    )
    with pytest.raises(ValueError, match=wanted):
        chain.init(numpy_actor.setting(chain))


def test_scores_outside_of_the_range_of_the_task_are_refused():
    signed = replace(numbered_task(), step_range=(0.9, 1.0))
    chain = recipe("scope").experience
    own = numpy_actor.setting(chain, task=signed)
    with pytest.raises(ValueError, match=r"must be in its step_range \[0.9, 1\], got"):
        numpy_actor.walk(chain, steps=1, own=own)


@pytest.mark.parametrize(("teacher", "policies"), [(None, "current"), ("start", "teacher")])
def test_the_teacher_of_the_recipe_continues_if_there_is_one(teacher, policies):
    asked = set()

    class Listening(numpy_actor.NumpyActor):
        def draw(self, requests, *others):
            asked.update(one.policy for one in requests if one.given)
            return super().draw(requests, *others)

    method = recipe("scope", teacher=teacher, hint_fraction=0)
    walked = numpy_actor.walk(method.experience, Listening(chance=0.3))
    assert asked == {policies} and method.teacher == teacher
    salvaged = sum(collected.metrics["salvaged_rows"] for collected, _, _ in walked)
    assert salvaged > 0 or teacher is None


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("( 3 + 12 = 15 ) + 4 = 19", [1, 0]),
        ("( 3 * 12 = 36 ) + 4 = 40 ; ( 3 + 12 = 15 ) * 4 = 60", [0, 0, 1, 1]),
    ],
)
def test_a_step_is_right_if_a_solution_begins_so(text, scores):
    prompt = Prompt("3 12 4 60 >", answer=[3, 12, 4, 60])
    assert [step.score for step in path_scores(prompt, text)] == scores


def test_what_is_salvaged_begins_as_the_policy_did_and_ends_as_the_teacher():
    chain, salvaged = recipe("scope").experience, 0
    for collected, _, _ in numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=0.3), steps=8):
        batch, rollouts = collected.batch, collected.batch.rollouts
        sampled = collected.seen[0]
        _, start = repairable(
            sampled.with_rollouts(
                **dict(zip(("step", "process_reward"), scored(sampled), strict=True))
            ),
            0.5,
        )
        changed = (rollouts.records["origin"] == TEACHER).any(axis=1)
        for row in np.flatnonzero(changed):
            kept = start[row]
            same = rollouts.tokens[row, :kept] == sampled.rollouts.tokens[row, :kept]
            assert kept > 0 and same.all() and (rollouts.records["origin"][row, :kept] == 0).all()
            assert rollouts.reward[row] == 1 and sampled.rollouts.outcome[row] == 0
            length = rollouts.length[row]
            assert rollouts.mask[row, :length].all() and not rollouts.mask[row, length:].any()
            assert (rollouts.prompt_tokens[row] == sampled.rollouts.prompt_tokens[row]).all()
        # A group that had a wrong answer still has one.
        had = [(sampled.rollouts.outcome[rows] == 0).any() for rows in sampled.groups]
        has = [(rollouts.reward[rows] == 0).any() for rows in batch.groups]
        assert had == has
        salvaged += int(changed.sum())
    assert salvaged > 0


def test_a_wrong_answer_that_stays_has_a_verdict():
    batch = numpy_actor.walk(recipe("prefix_rl").experience, steps=1)[0][0].batch
    rows = np.array([0, 1])
    for grades, spared in (([0, 0, 1, 0], [True, True]), ([0, 0, 1, None], [True, False])):
        told = [Grade(x) for x in grades] + [Grade(1.0)] * (len(batch) - 4)
        assert _spared(batch.graded(told), rows).tolist() == spared


def scored(batch):
    from rlvr_jax.experience.stages.rewards.score_steps import scored_steps

    step, reward, _ = scored_steps(batch, numbered_task())
    return np.where(batch.rollouts.mask, step, -1), reward


def test_steps_must_be_scored_first():
    chain = recipe("scope").experience
    stage = chain.stages["salvage"]
    batch = numpy_actor.walk(recipe("prefix_rl").experience, steps=1)[0][0].batch
    with pytest.raises(ValueError, match=r"steps must be scored, put score_steps\(\)"):
        stage.apply(batch, None, (), StepContext(0, None, numpy_actor.setting(chain), None))


@pytest.mark.slow
def test_training_on_answers_that_were_salvaged(tmp_path):
    steps = training_runs.on_brackets("scope", tmp_path, PATHS, steps=3)
    assert max(training_runs.values(steps, "experience/salvageable_rows")) > 0
    assert max(training_runs.values(steps, "experience/salvaged_rows")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
