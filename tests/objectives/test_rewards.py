"""Rewards made of rewards: what is added, what a gate closes, what changes with the step."""

import jax
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.experience import Moment, Shaping, bounded, column, plain_outcome, total
from rlvr_jax.methods.agents.spear import falling_cosine, over_steps
from rlvr_jax.methods.rewards.spurious_rewards import random_reward
from rlvr_jax.types import Rollouts

NOW = Moment(3, jax.random.key(0), np.arange(4, dtype=np.int32))


def rollouts(dtype=np.float64, **records):
    return Rollouts.of_responses(
        tokens=array(np.zeros((4, 3)), np.int32),
        mask=array(np.ones((4, 3)), bool),
        reward=array([1.0, 0.0, 1.0, 0.0], dtype),
        group=array([0, 0, 1, 1], np.int32),
        component_rewards=array([[0.5, 1], [0.25, 0], [1, 1], [np.nan, 0]], dtype),
        **records,
    )


def counted():
    """A reward whose state is how often it was asked."""

    def apply(rollouts, state, moment):
        del moment
        return 0 * rollouts.outcome + float(state), state + 1, {"asked": float(state)}

    return Shaping(apply, init=lambda prompts: np.int32(prompts))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_are_told_before_they_are_weighed(dtype):
    own = total({"outcome": plain_outcome, "first": column(0)}, {"first": 2.0})
    value, _, told = own.apply(rollouts(dtype), (), NOW)
    np.testing.assert_array_equal(value, [2.0, 0.5, 3.0, np.nan])
    assert value.dtype == dtype
    assert told == {"reward/outcome": 0.5, "reward/first": pytest.approx(1.75 / 3)}
    assert own.columns == 1 and own.reads == {"component_rewards"}
    assert own.label.startswith("total(parts=")


def test_a_part_that_counts_nothing_need_not_be_known():
    own = total({"outcome": plain_outcome, "first": column(0)}, {"first": 0.0})
    np.testing.assert_array_equal(own(rollouts()), [1, 0, 1, 0])
    later = total({"outcome": plain_outcome, "fading": over_steps(column(0), falling_cosine(5))})
    value, _, told = later.apply(rollouts(), ((), ()), NOW._replace(step=9))
    np.testing.assert_array_equal(value, [1, 0, 1, 0])
    assert told["reward/fading"] == 0
    value, _, _ = later.apply(rollouts(), ((), ()), NOW._replace(step=4))
    assert np.isnan(value).tolist() == [False, False, False, True]


def test_a_state_and_a_key_belong_to_one_part():
    own = total(
        {"one": counted(), "noise": random_reward(), "two": counted(), "more": random_reward()}
    )
    state = own.init(5)
    value, state, _ = own.apply(rollouts(), state, NOW)
    value, state, _ = own.apply(rollouts(), state, NOW)
    assert [int(part) for part in (state[0], state[2])] == [7, 7]
    np.testing.assert_array_equal(value - np.floor(value), 0)
    drawn = [
        np.asarray(
            total({"a": random_reward(), "b": random_reward()}, weights).apply(
                rollouts(), ((), ()), NOW._replace(prompt=np.arange(4, dtype=np.int32))
            )[0]
        )
        for weights in ({"a": 0.0}, {"b": 0.0})
    ]
    assert np.any(drawn[0] != drawn[1])


def test_factors_move_with_the_step_and_stay_at_the_end():
    falling = falling_cosine(200)
    assert (falling(0), falling(100), falling(200), falling(999)) == (1, 0.5, 0, 0)
    own = over_steps(plain_outcome, falling_cosine(6))
    value, _, told = own.apply(rollouts(), (), NOW)
    np.testing.assert_allclose(value, [0.5, 0, 0.5, 0], rtol=1e-15)  # one cosine
    assert told["reward_factor"] == pytest.approx(0.5)


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


def test_bounds_keep_state():
    np.testing.assert_array_equal(bounded(column(0), 0.3, 0.6)(rollouts()), [0.5, 0.3, 0.6, np.nan])
    assert bounded(counted(), 0, 9).init(5) == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: total({}), "total: weights must be of the parts"),
        (
            lambda: total({"a": plain_outcome}, {"b": 1.0}),
            r"parts \['a'\], at least one, got \['b'",
        ),
        (lambda: total({"a": plain_outcome}, {"a": np.inf}), "must be finite, got inf"),
        (lambda: bounded(plain_outcome, 1.0, 0.0), "bounded: low must be at most high 0, got 1"),
        (lambda: column(-1), "column: number must be at least 0, got -1"),
        (lambda: falling_cosine(0), "falling_cosine: steps must be at least 1, got 0"),
        (lambda: random_reward(2.0), r"random_reward: chance must be in \[0, 1\], got 2"),
    ],
)
def test_what_makes_no_reward_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
