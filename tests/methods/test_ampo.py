"""RL-PLUS, CalibRL, AMPO: worked solutions in groups, by other losses than LUFFY's."""

import dataclasses

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.ampo import (
    by_comprehension,
    none_above,
    place_ranked_traces,
    traces_of,
)
from rlvr_jax.tasks import Grade, Prompt

GUESSES = {"traces": 2}


class Failing(numpy_actor.NumpyActor):
    """All drawn answers are wrong, all written ones right."""

    def grade(self, batch):
        written = "off_policy" in batch.rollouts.records
        return super(Failing, dataclasses.replace(self, chance=float(written))).grade(batch)


def with_solutions(number):
    """A task whose prompts have several worked solutions, of other lengths."""
    task = numbered_task()
    texts = [("a" * (1 + n), "b") for n in range(number)]
    train = [dataclasses.replace(p, meta={**p.meta, "solutions": texts}) for p in task.train]
    return dataclasses.replace(task, train=train)


def test_failed_groups_get_the_solutions_that_are_understood_best():
    chain = recipe("ampo").experience
    own = numpy_actor.setting(chain, with_solutions(3))
    placed = 0
    for collected, _, _ in numpy_actor.walk(chain, Failing(), own=own):
        batch, (sampled,) = collected.batch, collected.seen
        foreign = batch.by_group(batch.rollouts.records["off_policy"], False)
        assert foreign.sum(axis=1).tolist() == [2] * len(batch.groups)
        assert batch.rollouts.reward[batch.rollouts.records["off_policy"]].tolist() == [1.0] * 8
        assert len(batch) == len(sampled) and collected.metrics["traces"] == 8
        assert collected.metrics["scored_tokens"] > 0
        placed += int(foreign.sum())
    assert placed > 0


class Half(numpy_actor.NumpyActor):
    """Answers that are half right."""

    def grade(self, batch):
        grades = [Grade(0.55)] * len(batch)
        outcome = np.full(len(batch), 0.55, np.float32)
        graded = batch.with_rollouts(outcome=outcome, reward=outcome)
        return graded.graded(grades)


@pytest.mark.parametrize(("correct_above", "placed"), [(0.6, 2), (0.5, 0)])
def test_what_is_right_is_one_bound_for_groups_and_for_rows(correct_above, placed):
    chain = recipe("ampo", correct_above=correct_above).experience
    ((collected, _, _),) = numpy_actor.walk(chain, Half(), 1)
    foreign = collected.batch.by_group(collected.batch.rollouts.records["off_policy"], False)
    assert foreign.sum(axis=1).tolist() == [min(placed, 1)] * len(foreign)


def test_solutions_longer_than_the_budget_are_counted():
    class Wordy(numpy_actor.NumpyActor):
        def encode(self, text):
            return [1] * len(text)

    task = numbered_task()
    texts = [("a" * 9, "b"), ("a", "b")]
    train = [dataclasses.replace(p, meta={**p.meta, "solutions": texts}) for p in task.train]
    for name, more, curve, number in (
        ("ampo", {}, "traces_too_long", 4),
        ("meml_grpo", {"capacity": 4, "probability": 1.0}, "solutions_too_long", 4),
    ):
        chain = recipe(name, **more).experience
        own = numpy_actor.setting(chain, dataclasses.replace(task, train=train))
        ((collected, _, _),) = numpy_actor.walk(chain, Wordy(chance=-1.0), 1, own=own)
        assert collected.metrics[curve] == number


def test_where_no_row_is_wrong_none_is_overwritten():
    chain = experience(stages=[place_ranked_traces(none_above(0.9))])
    ((collected, _, _),) = numpy_actor.walk(chain, Half(), 1)
    assert (
        not collected.batch.rollouts.records["off_policy"].any()
        and collected.metrics["traces"] == 0
    )


def test_solved_groups_are_left_alone():
    chain = recipe("ampo").experience
    for collected, _, _ in numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=1.0)):
        solved = np.nanmax(collected.seen[0].outcomes(), axis=1) > 0
        foreign = collected.batch.by_group(collected.batch.rollouts.records["off_policy"], False)
        np.testing.assert_array_equal(foreign.any(axis=1), ~solved)


def test_of_equally_understood_solutions_the_shorter_comes_first():
    assert by_comprehension([0.2, 0.7, 0.7], [3, 9, 4], 2).tolist() == [2, 1]


def test_a_prompt_without_further_solutions_has_its_own():
    assert traces_of(Prompt("p", solution=("a", "b"))) == [("a", "b")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rl_plus", "calibrl"])
def test_training_learns_from_solutions(name, tmp_path):
    steps = training_runs.on_brackets(name, tmp_path)
    assert min(training_runs.values(steps, "experience/traces_right")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    acted = {"rl_plus": "unlikely_weight", "calibrl": "calibrated_fraction"}
    assert max(map(abs, training_runs.values(steps, acted[name]))) > 0


@pytest.mark.slow
def test_training_places_the_solutions_of_several_forms(tmp_path):
    steps = training_runs.on_brackets("ampo", tmp_path, hyperparameters=("correct_above=1.0",))
    assert max(training_runs.values(steps, "experience/traces")) > 0
    assert max(training_runs.values(steps, "experience/comprehension")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
