"""LaSeR: the policy rewards itself by one log-prob after its last token."""

import numpy as np
import pytest
from golden_vectors import array, assert_agrees
from training_runs import trained, values

from rlvr_jax.methods.judges.laser import class_balance, self_advantage, usable_score, usable_spread

GROUP = array([5, 5, 5, -1, -1], np.int32)


@pytest.mark.slow  # ten seconds
def test_a_policy_rewards_itself(model, tmp_path):
    given = ("token=<pad>", "reference_logp=-3.0", "min_std=0.0")
    lines = trained(model, tmp_path / "run", "laser", *given)
    assert all(values(lines, "experience/self_reward"))
    assert any(values(lines, "self_reward/correct")) and any(values(lines, "self_reward/incorrect"))


def test_both_classes_weigh_half():
    correct = array([1, 1, 1, 0, 0], bool)
    finished = array([1, 1, 0, 1, 1], bool)
    weights = np.asarray(class_balance(correct, finished))
    assert_agrees(weights, [1] * 5)
    one_class = np.asarray(class_balance(array(np.ones(5), bool), finished))
    assert_agrees(one_class, [0.5] * 5)


def test_scores_that_say_nothing_leave_the_advantage():
    score = array([0.2, 0.2, 0.2, 0.0, 1.0], np.float64)
    plain = array([1.0, -1.0, 3.0, 4.0, 5.0], np.float64)
    found = self_advantage(score, plain, GROUP, 0.0)
    assert_agrees(found, [1, -1, 3, -np.sqrt(0.5), np.sqrt(0.5)])


def test_scores_of_a_group_are_used_if_they_spread():
    finished = array([1, 1, 0, 1, 1], bool)
    score = usable_score(array([0.2, -3.0, 0.9, 0.4, 2.0], np.float64), finished)
    assert_agrees(score, [0.2, 0, 0, 0.4, 1])
    spread, useful = usable_spread(score, GROUP, 0.2)
    assert_agrees(spread, [np.std([0.2, 0, 0], ddof=1)] * 3 + [np.std([0.4, 1], ddof=1)] * 2)
    assert np.asarray(useful).tolist() == [False] * 3 + [True] * 2
