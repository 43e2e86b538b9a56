"""Answers whose steps agree with their outcome, and the steps themselves."""

from dataclasses import replace

import numpy as np
import pytest

from rlvr_jax.experience import experience, score_steps
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages.rewards.score_steps import tokens_up_to
from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.prof import (
    consistency,
    consistent_rows,
    num_correct_selected,
    step_means,
)
from rlvr_jax.methods.trees.cure import branch
from rlvr_jax.tasks import StepScore, Task

RTOL = 1e-6  # float32 sums of at most four ones


def test_both_kinds_are_as_equal_as_they_can_be():
    assert num_correct_selected(5, 3, 4) == 2
    for number in (2, 4, 6):
        for correct_rows in range(2 * number + 1):
            incorrect_rows = 2 * number - correct_rows
            found = num_correct_selected(correct_rows, incorrect_rows, number)
            possible = [
                q for q in range(number + 1) if q <= correct_rows and number - q <= incorrect_rows
            ]
            assert found in possible
            assert found * (number - found) == max(q * (number - q) for q in possible)


def test_right_ones_of_right_steps_and_wrong_ones_of_wrong_steps_stay():
    correct = np.array([1, 1, 1, 0, 0, 0], bool)
    agreement = consistency(
        np.array([0.2, 0.9, 0.9, 0.1, 0.5, 0.1]), np.array([2, 2, 1, 2, 2, 2]), correct, 1.0, 30
    )
    kept = consistent_rows(correct, agreement, 4)
    np.testing.assert_array_equal(kept, [1, 1, 0, 1, 0, 1])


def test_rows_that_only_their_steps_select_are_counted():
    chain, task = recipe("prof").experience, numbered_task()
    equal = replace(task, score_steps=lambda prompt, text: [StepScore(len(text), 1.0)])
    for own, some in ((task, True), (equal, False)):
        walked = numpy_actor.walk(chain, own=numpy_actor.setting(chain, own))
        assert (sum(found.metrics["reordered_rows"] for found, _, _ in walked) > 0) == some


def test_one_step_and_many_are_no_steps():
    found = consistency(np.full(4, 0.5), np.array([0, 1, 29, 30]), np.ones(4, bool), 1.0, 30)
    np.testing.assert_array_equal(found, [-0.5, -0.5, 0.5, -0.5])


def test_the_scores_of_a_record_are_those_of_its_texts():
    """Ids are counted, and scores stand on last tokens."""
    for found, _, _ in numpy_actor.walk(experience(stages=[score_steps()])):
        batch = found.batch
        means, number = step_means(batch.rollouts)
        for row, response in enumerate(batch.responses):
            words = response.text.split()[1::2]
            assert number[row] == len(words)
            wanted = np.mean([word[-1] in "02468" for word in words]) if words else 0
            np.testing.assert_allclose(means[row], wanted, rtol=RTOL)
            whole = 2 * len(words)
            np.testing.assert_array_equal(
                batch.rollouts.records["step"][row], [*np.arange(whole) // 2, *[-1] * (8 - whole)]
            )
            assert not batch.rollouts.records["process_reward"][row, 0:whole:2].any()


def test_a_step_that_was_given_is_none_of_the_rows():
    chain = experience(stages=[branch(lambda batch, turn: (batch.rollouts.length // 2, {}), 1)])
    for found, _, _ in numpy_actor.walk(
        experience(stages=[*chain.stages.values(), score_steps()]), steps=2
    ):
        rollouts = found.batch.rollouts
        assert np.all(rollouts.records["step"][~rollouts.mask] == -1)
        _, number = step_means(rollouts)
        whole = [len(response.text.split()) // 2 for response in found.batch.responses]
        given = rollouts.length - rollouts.mask.sum(axis=1)
        np.testing.assert_array_equal(number, np.array(whole) - np.minimum(given // 2, whole))


def test_prof_keeps_half_and_trains_on_it():
    chain = recipe("prof").experience
    for found, _, _ in numpy_actor.walk(chain):
        sampled, batch = found.seen[0], found.batch
        assert len(sampled) == 2 * len(batch)
        for before, after in zip(sampled.groups, batch.groups, strict=True):
            correct_rows = int(sampled.rollouts.outcome[before].sum())
            kept = int(batch.rollouts.outcome[after].sum())
            assert kept == num_correct_selected(
                correct_rows, len(before) - correct_rows, len(after)
            )
        assert found.metrics["steps"] > 0


def test_tokens_are_found_by_the_text_that_they_have_made():
    words = numpy_actor.Words()
    ids = [3, 10, 4, 5]  # word3 word10 word4 word5
    assert tokens_up_to(words, ids, [1, 5, 6, 12, 13, 18, 24]) == [1, 1, 2, 2, 3, 3, 4]


def test_a_task_that_scores_no_steps_is_refused():
    chain = recipe("prof").experience
    task = numbered_task()
    plain = Task("plain", task.train, task.test, None)
    with pytest.raises(ValueError, match=r"task must have Task.score_steps, got 'plain'"):
        chain.init(numpy_actor.setting(chain, plain))
