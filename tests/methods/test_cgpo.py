"""CGPO: rewards under constraints that judges check, with three optimizers."""

import numpy as np
import pytest
import training_runs
from golden_vectors import array
from training_runs import values

from rlvr_jax.methods.judges.cgpo import (
    ConstrainedReward,
    constrained_reward,
    feasible_preference_choice,
    where_judged,
)
from rlvr_jax.types import Rollouts

GROUP = array([4, 4, 4, 1, 1], np.int32)


IDS = array([2, 1, 0, 4, 3], np.int32)


def judged_by(judge, tmp_path):
    """A run of CGPO whose only judge is one of the tests' own."""
    return training_runs.on_brackets(
        "cgpo",
        tmp_path,
        hyperparameters=("judges=0",),
        judge=f"own_judges:{judge}",
        samples_per_prompt=4,
    )


@pytest.mark.thorough
def test_rewards_are_compared_with_those_of_worked_solutions(tmp_path):
    steps = judged_by("thirds", tmp_path)
    assert max(values(steps, "gradient_norm")) > 0
    assert all(count == 8 for count in values(steps, "experience/traces"))
    assert all(0 < fraction < 1 for fraction in values(steps, "info/judge"))


@pytest.mark.thorough
def test_a_judge_that_is_down_accepts_nothing(tmp_path):
    steps = judged_by("broken", tmp_path)
    # Of four rows of a group three were drawn, and one was given.
    traces = np.array(values(steps, "experience/traces"))
    np.testing.assert_array_equal(values(steps, "experience/rows_without_reward"), 3 * traces)


def chosen(feasible, reward=(0.3, 0.3, 0.1, 0.5, 0.9), written=(1, 1, 1, 1, 1)):
    reward, feasible = array(reward, np.float64), array(feasible, bool)
    given = ConstrainedReward(reward, feasible)
    batch = Rollouts.of_responses(
        np.zeros((5, 1), int), np.array(written, bool)[:, None], reward, GROUP, rollout_id=IDS
    )
    return [np.flatnonzero(rows).tolist() for rows in feasible_preference_choice(given, batch)]


def test_the_best_accepted_meets_the_worst_rejected():
    assert chosen([1, 1, 0, 1, 0]) == [[1, 3], [2, 4]]  # of equal rewards the smaller id


def test_without_a_rejected_row_the_worst_of_all_and_without_an_accepted_one_nothing():
    assert chosen([1, 1, 1, 0, 0]) == [[1], [2]]


def test_rows_without_tokens_are_no_candidates():
    assert chosen([1, 1, 0, 1, 0], written=(1, 0, 1, 1, 0)) == [[0, 3], [2, 3]]


def test_a_judge_that_does_not_apply_rejects_nothing():
    verdicts = np.array([[0, 1, np.nan], [0, np.nan, 0], [0, np.nan, np.nan], [0, 1, 1], [0, 0, 1]])
    batch = Rollouts.of_responses(
        np.zeros((5, 1), int),
        np.ones((5, 1), bool),
        np.zeros(5),
        GROUP,
        component_rewards=verdicts,
        off_policy=np.zeros(5, bool),
    )
    found = constrained_reward(batch, (1, 2)).feasible
    np.testing.assert_array_equal(found, [True, False, True, True, False])


def test_a_row_about_which_no_judge_has_a_verdict_has_no_reward():
    verdicts = np.array([[0, 1, np.nan], [0, np.nan, np.nan], [0, 0, 1], [0, np.nan, np.nan]])
    batch = Rollouts.of_responses(
        np.zeros((4, 1), int),
        np.ones((4, 1), bool),
        np.array([0.1, 0.2, 0.3, 0.4]),
        GROUP[:4],
        component_rewards=verdicts,
        off_policy=np.array([False, False, False, True]),
    )
    found = where_judged((1, 2))(batch)
    np.testing.assert_allclose(found, [0.1, np.nan, 0.3, 0.4], rtol=1e-6)
    with pytest.raises(ValueError, match="columns must be at least one, got none"):
        where_judged(())
