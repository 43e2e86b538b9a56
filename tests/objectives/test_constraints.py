"""Judged rewards, low-probability protection, penalized outcomes."""

import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.experience import first_of_largest
from rlvr_jax.methods.baselines.w_grpo_pairing import penalized_outcome
from rlvr_jax.methods.entropy.lp_reg import low_probability_candidates, min_p_proxy
from rlvr_jax.methods.judges.cgpo import (
    ConstrainedReward,
    constrained_reward,
    feasible_preference_choice,
    where_judged,
)
from rlvr_jax.types import Rollouts

GROUP = array([4, 4, 4, 1, 1], np.int32)
IDS = array([2, 1, 0, 4, 3], np.int32)


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


def test_groups_without_candidates_have_no_best_row():
    none = array(np.zeros(5), bool)
    assert not np.asarray(first_of_largest(jnp.ones(5), GROUP, IDS, none)).any()


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


def test_a_negative_penalty_is_refused():
    with pytest.raises(ValueError, match="penalized_outcome: negative must be at least 0, got -1"):
        penalized_outcome(-1)
