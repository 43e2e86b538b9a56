"""The stage that gives rewards: who is compared, what is refused, what a reward of NaN does."""

import dataclasses
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import reward_tasks
import training_runs

from rlvr_jax.experience import Shaping, agreement, column, experience, score_steps, shape, shaping
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.objectives import group_mean
from rlvr_jax.runs.step import collect, take_step
from rlvr_jax.tasks import Grade, StepScore


class Undecided(numpy_actor.NumpyActor):
    """Every third row has no verdict."""

    def grade(self, batch):
        batch = super().grade(batch)
        grades = [
            Grade(None, info=grade.info) if row % 3 == 0 else grade
            for row, grade in enumerate(batch.grades)
        ]
        return batch.graded(grades)


def first(reward, actor=None):
    chain = experience(stages=[shape(reward)])
    ((collected, _, _),) = numpy_actor.walk(chain, actor or numpy_actor.NumpyActor(), steps=1)
    return collected


def test_rows_without_a_verdict_are_in_no_statistic_of_a_group():
    mean = shaping(lambda rollouts: group_mean(rollouts.outcome, rollouts.group))
    batch = first(mean, Undecided()).batch
    decided = batch.decided
    assert not decided.all()
    for rows in batch.groups:
        counted = rows[decided[rows]]
        np.testing.assert_allclose(
            batch.rollouts.reward[counted], batch.rollouts.outcome[counted].mean(), rtol=1e-6
        )
    np.testing.assert_array_equal(batch.rollouts.reward[~decided], 0)


def test_a_reward_of_nan_is_counted_and_leaves_the_group_and_the_loss(tmp_path):
    def reward(rollouts):
        return jnp.where(rollouts.length % 2 == 0, jnp.nan, rollouts.outcome)

    found = first(shaping(reward))
    even = found.batch.rollouts.length % 2 == 0
    assert found.metrics["rows_without_reward"] == even.sum() > 0
    settings = training_runs.settings(training_runs.write_policy(tmp_path), "unused")
    run = training_runs.prepared(settings)
    chain = experience(stages=[shape(shaping(reward))])
    run = dataclasses.replace(run, recipe=dataclasses.replace(run.recipe, experience=chain))
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    even = batch.rollouts.length % 2 == 0
    assert even.any() and (batch.rollouts.valid == ~even).all()
    assert np.isfinite(batch.rollouts.reward).all()
    taken = take_step(run, state, 0)
    assert np.isfinite([taken.metrics["loss"], taken.metrics["reward"]]).all()


def test_rewards_and_scores_that_are_not_finite_are_refused_in_a_sentence():
    def odds(rollouts):
        return 1 / rollouts.outcome

    wanted = r"shape\(shaping\(.*odds.*: rewards must be finite in float32 or NaN, got inf for a"
    with pytest.raises(ValueError, match=wanted), np.errstate(divide="ignore"):
        first(shaping(odds))

    def unknown(prompt, text):
        del prompt
        return [StepScore(len(text), float("nan"))] if text else []

    task = dataclasses.replace(numbered_task(), score_steps=unknown)
    chain = experience(stages=[score_steps()])
    with pytest.raises(
        ValueError, match=r"scores of steps must be in its step_range \[0, 1\], got \[nan\] for a"
    ):
        numpy_actor.walk(chain, steps=1, own=numpy_actor.setting(chain, task=task))


def test_the_prompts_of_rows_and_a_state_are_told():
    def apply(rollouts, state, moment):
        state = state.copy()
        np.add.at(state, moment.prompt, 1)
        return rollouts.outcome, state, {"seen": float(state.sum())}

    visits = Shaping(apply, init=lambda prompts: np.zeros(prompts, np.int32))
    chain = experience(stages=[shape(visits)])
    found = numpy_actor.walk(chain, steps=3)
    assert [collected.metrics["seen"] for collected, _, _ in found] == [16, 32, 48]
    asked = [request.number for collected, _, _ in found for request in collected.batch.requests]
    (state,) = found[-1][2].values()
    np.testing.assert_array_equal(state, np.bincount(asked, minlength=12))


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (
            column(5),
            r"shape\(column\(number=5\)\): reads 6 rewards of a task.*got 2 of task 'numbered'",
        ),
        (agreement(), r"shape\(reward=agreement.*task must have Task.answers, got 'numbered'"),
    ],
)
def test_a_task_that_does_not_give_what_is_read_is_refused(reward, message):
    chain = experience(stages=[shape(reward)])
    task = replace(numbered_task(), answers=False)
    with pytest.raises(ValueError, match=message):
        chain.init(numpy_actor.setting(chain, task))


def test_the_task_of_these_tests_has_rows_without_a_verdict():
    task = reward_tasks.graded_sums()
    assert task.rewards == reward_tasks.NAMES and task.answers
