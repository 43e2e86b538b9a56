"""CANON: split each group by entropy or length, and let the halves compete."""

import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import rollouts
from one_transform import BATCH, signals

from rlvr_jax.methods.entropy.canon import (
    conditional_advantages,
    in_high_half,
    restarting_inter_fraction,
)
from rlvr_jax.objectives.advantages.group_relative import group_centered

ATOL = 1e-14  # float64, a handful of operations on numbers of order one


@pytest.mark.thorough
def test_halves_of_an_even_group_mix_to_the_centered_reward():
    reward, group = rollouts("b", True).reward, BATCH.group
    every = jnp.ones(12, bool)
    high = in_high_half(reward[::-1], group, BATCH.rollout_id, every)
    found = conditional_advantages(reward, group, high, every, inter_fraction=0.5)
    wanted = signals(group_centered(), batch=rollouts("b", True)).advantage[:, 0]
    np.testing.assert_allclose(found, wanted, atol=ATOL)


def test_groups_of_one_have_nothing_to_compare_with_even_under_a_bonus():
    alone, every = BATCH.rollout_id, jnp.ones(12, bool)
    high = in_high_half(BATCH.reward, alone, alone, every)
    found = conditional_advantages(BATCH.reward, alone, high, every, 1.0, tilt=0.9, bonus=0.1)
    assert not np.asarray(found).any()


def test_the_schedule_falls_once_and_restarts():
    found = np.asarray(restarting_inter_fraction(BATCH, jnp.asarray([0, 29, 30, 50, 70])))
    np.testing.assert_allclose(found, [0.98, 0.4, 0.4, 0.7, 0.4], atol=ATOL)


def test_rollouts_are_compared_whatever_their_order():
    order = np.random.default_rng(0).permutation(12)
    moved = {name: array[order] for name, array in BATCH.arrays.items()}
    values = jnp.zeros(12)  # all equal: ties are broken by rollout_id
    every = jnp.ones(12, bool)
    plain = in_high_half(values, BATCH.group, BATCH.rollout_id, every)
    found = in_high_half(values, moved["group"], moved["rollout_id"], every)
    np.testing.assert_array_equal(found, np.asarray(plain)[order])
