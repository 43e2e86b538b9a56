"""Verdicts on the own response."""

import golden_vectors as golden
import numpy as np
from adapters.common import only
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.judges.laser import class_balance, self_advantage, self_reward_loss
from rlvr_jax.methods.judges.rl_v import verdict_loss
from rlvr_jax.objectives.statistics.groups import finished_rows

GROUP = array([5, 5, 5, -1, -1], np.int32)


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
    batch = batch.replace(mask=array(mask, bool), truncated=array(truncated, bool))
    assert not np.asarray(finished_rows(batch))[[1, 2]].any()
    for part in (self_reward_loss(1.0, 0.1, -8.0), verdict_loss(1.0)):
        slope = np.asarray(
            golden.step(only(part).objective, stats, batch).dstats.records["verdict_logp"]
        )
        assert not slope[[1, 2]].any() and slope.any()
