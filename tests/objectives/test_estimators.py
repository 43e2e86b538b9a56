"""Edges of the advantage estimators and of the transforms that act on their results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, rollouts, spec, stats

from rlvr_jax.methods.baselines.gpg import amplify_informative
from rlvr_jax.methods.baselines.ngrpo import drop_perfect_groups
from rlvr_jax.methods.baselines.nsr import drop_neutral_rollouts, signed_by_outcome
from rlvr_jax.methods.baselines.opo import length_centered
from rlvr_jax.methods.credit.apo import long_error_factor
from rlvr_jax.methods.entropy.ace import amplify_confident_errors
from rlvr_jax.methods.entropy.canon import (
    conditional_advantages,
    in_high_half,
    restarting_inter_share,
)
from rlvr_jax.objectives.advantages.group_relative import group_centered, plain_reward, relative_to
from rlvr_jax.objectives.advantages.whitening import whitened
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.groups import batch_mean
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce

ATOL = 1e-14  # float64, a handful of operations on numbers of order one
BATCH = rollouts("b")


def signals(advantage, *transforms, batch=BATCH):
    own = objective(advantage, transforms, surrogate=reinforce(), aggregation=token_mean())
    return own.signals(stats("b"), batch, own.init(spec(batch)), jax.random.key(0))


def with_reward(reward):
    return BATCH.replace(reward=array(reward, np.float64), outcome=array(reward, np.float64))


def test_whitened_advantages_have_mean_0_and_variance_1_over_the_tokens():
    found = np.asarray(signals(whitened(plain_reward())).advantage)[np.asarray(BATCH.mask)]
    np.testing.assert_allclose([found.mean(), found.std()], [0, 1], atol=ATOL)


def test_equal_advantages_are_whitened_to_exactly_0():
    same = with_reward(np.full(12, 0.1))
    for ddof, epsilon, floor in ((0, 0.0, 1e-8), (1, 1e-8, 0.0)):
        found = signals(whitened(plain_reward(), ddof, epsilon, floor), batch=same)
        assert not np.asarray(found.advantage).any()


def test_length_centered_advantages_sum_to_0_over_the_tokens_of_a_group():
    found = np.asarray(signals(length_centered(), batch=rollouts("b", True)).advantage)
    np.testing.assert_allclose(found.reshape(3, -1).sum(axis=1), 0, atol=ATOL * 30)


def test_a_scale_can_be_a_number_and_a_baseline_any_statistic():
    half = signals(relative_to(batch_mean, scale=2.0)).advantage
    np.testing.assert_allclose(2 * half, signals(relative_to(batch_mean)).advantage, atol=ATOL)
    with pytest.raises(ValueError, match="relative_to: scale must be positive, got"):
        relative_to(batch_mean, scale=0.0)


def test_a_batch_without_signal_is_not_amplified():
    found = signals(group_centered(), amplify_informative(), batch=with_reward(np.ones(12)))
    assert not np.asarray(found.advantage).any()


def test_only_groups_that_are_perfect_leave_the_mask():
    reward = np.array([1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    found = signals(group_centered(), drop_perfect_groups(1.0), batch=with_reward(reward))
    kept = np.asarray(BATCH.mask) & (np.arange(12) >= 4)[:, None]
    np.testing.assert_array_equal(found.mask, kept)


def test_outcomes_that_are_neither_right_nor_wrong_are_dropped():
    reward = np.array([1, 0, 0.5] * 4)
    found = signals(signed_by_outcome(0.1, 1.0), drop_neutral_rollouts(), batch=with_reward(reward))
    push = np.array([0.1, -1.0, 0.0] * 4)[:, None]
    np.testing.assert_array_equal(found.advantage, np.where(BATCH.mask, push, 0))
    np.testing.assert_array_equal(found.mask, np.asarray(BATCH.mask) & (push != 0))
    with pytest.raises(ValueError, match="right and wrong must not both be 0"):
        signed_by_outcome(0.0, 0.0)


def test_right_answers_are_left_alone_however_far_the_policy_has_moved():
    plain = np.asarray(signals(group_centered()).advantage)
    found = np.asarray(signals(group_centered(), amplify_confident_errors(2.0)).advantage)
    np.testing.assert_array_equal(found[plain >= 0], plain[plain >= 0])
    assert (found[plain < 0] < plain[plain < 0]).all() and (plain < 0).any()


def test_without_a_right_answer_no_length_is_too_long():
    length, group = jnp.asarray([2, 9, 30]), jnp.zeros(3, jnp.int32)
    assert (np.asarray(long_error_factor(jnp.zeros(3), group, length, 1.1)) == 1).all()
    found = long_error_factor(jnp.asarray([1.2, 0.9, 0.0]), group, length, 1.1)
    np.testing.assert_allclose(found, [1, 2 - 1.1**-7, 2 - 1.1**-28], rtol=1e-8)


def test_halves_of_an_even_group_mix_to_the_centered_reward():
    reward, group = rollouts("b", True).reward, BATCH.group
    every = jnp.ones(12, bool)
    high = in_high_half(reward[::-1], group, BATCH.rollout_id, every)
    found = conditional_advantages(reward, group, high, every, inter_share=0.5)
    wanted = signals(group_centered(), batch=rollouts("b", True)).advantage[:, 0]
    np.testing.assert_allclose(found, wanted, atol=ATOL)


def test_groups_of_one_have_nothing_to_compare_with_even_under_a_bonus():
    alone, every = BATCH.rollout_id, jnp.ones(12, bool)
    high = in_high_half(BATCH.reward, alone, alone, every)
    found = conditional_advantages(BATCH.reward, alone, high, every, 1.0, tilt=0.9, bonus=0.1)
    assert not np.asarray(found).any()


def test_the_schedule_falls_once_and_restarts():
    found = np.asarray(restarting_inter_share(BATCH, jnp.asarray([0, 29, 30, 50, 70])))
    np.testing.assert_allclose(found, [0.98, 0.4, 0.4, 0.7, 0.4], atol=ATOL)


def test_rollouts_are_compared_whatever_their_order():
    order = np.random.default_rng(0).permutation(12)
    moved = {name: array[order] for name, array in BATCH.arrays.items()}
    values = jnp.zeros(12)  # all equal: ties are broken by rollout_id
    every = jnp.ones(12, bool)
    plain = in_high_half(values, BATCH.group, BATCH.rollout_id, every)
    found = in_high_half(values, moved["group"], moved["rollout_id"], every)
    np.testing.assert_array_equal(found, np.asarray(plain)[order])
