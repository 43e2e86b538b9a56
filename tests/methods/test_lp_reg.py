"""Lp-Reg: spare improbable tokens of incorrect rollouts that would pass a min-p filter."""

import numpy as np
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.entropy.lp_reg import low_probability_candidates, min_p_proxy


def test_dropped_entries_have_no_proxy_and_kept_ones_gain_what_was_dropped():
    logp, largest = array([np.log(0.5), np.log(0.004)], np.float64), np.log(0.5)
    found = min_p_proxy(logp, array(largest, np.float64), array(0.8, np.float64), 0.02)
    assert_agrees(np.exp(found), [0.625, 0])


def test_a_single_candidate_is_none():
    mask, advantage = array(np.ones((1, 4)), bool), array([[-1.0, -1.0, 1.0, 0.0]], np.float64)
    logp = array([[-3.0, -1.0, -9.0, -9.0]], np.float64)
    for fraction, number in ((0.5, 0), (1.0, 2)):
        found = low_probability_candidates(advantage, logp, mask, fraction, array([0], np.int32))
        assert np.asarray(found).sum() == number
