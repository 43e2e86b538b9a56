"""Rewards made of rewards: what is added, what a gate closes, what changes with the step."""

import jax
import numpy as np
import pytest
from part_rows import counted, rollouts

from rlvr_jax.experience import Moment, bounded, column, plain_outcome, total
from rlvr_jax.methods.agents.spear import falling_cosine
from rlvr_jax.methods.rewards.spurious_rewards import random_reward

NOW = Moment(3, jax.random.key(0), np.arange(4, dtype=np.int32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_are_told_before_they_are_weighed(dtype):
    own = total({"outcome": plain_outcome, "first": column(0)}, {"first": 2.0})
    value, _, told = own.apply(rollouts(dtype), (), NOW)
    np.testing.assert_array_equal(value, [2.0, 0.5, 3.0, np.nan])
    assert value.dtype == dtype
    assert told == {"reward/outcome": 0.5, "reward/first": pytest.approx(1.75 / 3)}
    assert own.columns == 1 and own.reads == {"component_rewards"}
    assert own.label.startswith("total(parts=")


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
