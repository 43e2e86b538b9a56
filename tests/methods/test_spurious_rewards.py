"""Spurious rewards: a control whose reward does not depend on the response."""

import jax
import numpy as np
import pytest
from golden_vectors import array
from part_rows import counted, rollouts

from rlvr_jax.experience import Moment, total
from rlvr_jax.methods.rewards.spurious_rewards import random_reward
from rlvr_jax.types import Rollouts

NOW = Moment(3, jax.random.key(0), np.arange(4, dtype=np.int32))


@pytest.mark.thorough
def test_a_state_and_a_key_belong_to_one_part():
    own = total(
        {"one": counted(), "noise": random_reward(), "two": counted(), "more": random_reward()}
    )
    state = own.init(5)
    value, state, _ = own.apply(rollouts(), state, NOW)
    value, state, _ = own.apply(rollouts(), state, NOW)
    assert [int(part) for part in (state[0], state[2])] == [7, 7]
    np.testing.assert_array_equal(value - np.floor(value), 0)
    sampled = [
        np.asarray(
            total({"a": random_reward(), "b": random_reward()}, weights).apply(
                rollouts(), ((), ()), NOW._replace(prompt=np.arange(4, dtype=np.int32))
            )[0]
        )
        for weights in ({"a": 0.0}, {"b": 0.0})
    ]
    assert np.any(sampled[0] != sampled[1])


@pytest.mark.thorough
def test_a_row_draws_the_same_in_any_order_and_another_in_another_step():
    rows = 64
    many = Rollouts.of_responses(
        tokens=array(np.zeros((rows, 1)), np.int32),
        mask=array(np.ones((rows, 1)), bool),
        reward=array(np.zeros(rows), np.float32),
        group=array(np.arange(rows) // 8, np.int32),
    )
    prompt = np.arange(rows, dtype=np.int32) // 8
    order = np.random.default_rng(0).permutation(rows)
    reward = random_reward(0.5)
    whole = np.asarray(reward.apply(many, (), NOW._replace(prompt=prompt))[0])
    mixed = jax.tree.map(lambda x: x[order], many)
    moved = reward.apply(mixed, (), NOW._replace(prompt=prompt[order]))[0]
    np.testing.assert_array_equal(moved, whole[order])
    later = reward.apply(many, (), Moment(4, jax.random.key(1), prompt))[0]
    assert np.any(later != whole) and 16 < whole.sum() < 48  # three deviations of 64 coins
