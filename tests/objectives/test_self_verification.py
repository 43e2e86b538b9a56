"""Verdicts on the own response, and votes."""

import golden_vectors as golden
import numpy as np
from adapters.common import only
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.judges.laser import class_balance, self_advantage, self_reward_loss
from rlvr_jax.methods.judges.rl_v import best_answer, most_voted_answer, verdict_loss
from rlvr_jax.objectives.advantages.self_verification import finished_rows
from rlvr_jax.types import replace

GROUP = array([5, 5, 5, -1, -1], np.int32)


def test_votes_are_counted_per_group_and_ties_go_to_the_smallest_answer():
    answer = array([9, 2, 9, 4, 3], np.int32)
    assert_agrees(most_voted_answer(answer, array(np.ones(5), np.float64), GROUP), [9, 9, 9, 3, 3])
    weights = array([0.1, 0.5, 0.1, 0.0, 0.0], np.float64)
    assert_agrees(most_voted_answer(answer, weights, GROUP), [2, 2, 2, 3, 3])


def test_the_best_answer_is_that_of_the_first_best_row():
    answer, rollout_id = array([9, 2, 7, 4, 3], np.int32), array([2, 1, 0, 4, 3], np.int32)
    score = array([0.5, 0.5, 0.1, 0.0, 0.0], np.float64)
    assert_agrees(best_answer(answer, score, GROUP, rollout_id), [2, 2, 2, 3, 3])


def test_both_classes_weigh_half():
    right = array([1, 1, 1, 0, 0], bool)
    finished = array([1, 1, 0, 1, 1], bool)
    weights = np.asarray(class_balance(right, finished))
    assert_agrees(weights, [1] * 5)
    one_class = np.asarray(class_balance(array(np.ones(5), bool), finished))
    assert_agrees(one_class, [0.5] * 5)


def test_scores_that_say_nothing_leave_the_advantage():
    score = array([0.2, 0.2, 0.2, 0.0, 1.0], np.float64)
    plain = array([1.0, -1.0, 3.0, 4.0, 5.0], np.float64)
    found = self_advantage(score, plain, GROUP, 0.0)
    assert_agrees(found, [1, -1, 3, -np.sqrt(0.5), np.sqrt(0.5)])


def test_cut_and_empty_rows_have_no_verdict():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    mask = np.asarray(batch.mask).copy()
    mask[1] = False
    truncated = np.zeros(mask.shape[0], bool)
    truncated[2] = True
    batch = replace(batch, mask=array(mask, bool), truncated=array(truncated, bool))
    assert not np.asarray(finished_rows(batch))[[1, 2]].any()
    for part in (self_reward_loss(1.0, 0.1, -8.0), verdict_loss(1.0)):
        slope = np.asarray(golden.step(only(part).objective, stats, batch).dstats.verdict_logp)
        assert not slope[[1, 2]].any() and slope.any()
