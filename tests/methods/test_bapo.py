"""The search for balanced bounds against the loop that it stands for."""

import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.clipping.bapo import Search, balance_signs
from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, TokenStats, replace

LOW, HIGH, EPSILON = Search(0.6, 0.8, 0.05), Search(1.2, 2.0, 0.05), 1e-8


def loop(advantage, ratio, target):
    low, high, steps = LOW.first, HIGH.first, 0

    def balance():
        up = (np.minimum(ratio, high) * advantage)[advantage >= 0].sum()
        down = (np.maximum(ratio, low) * -advantage)[advantage < 0].sum()
        return up / (down + EPSILON) if down > 0 else 1e9

    while balance() < target and low < LOW.last:
        low, steps = min(low + LOW.step, LOW.last), steps + 1
    while balance() < target and high < HIGH.last:
        high, steps = min(high + HIGH.step, HIGH.last), steps + 1
    return low, high, balance(), steps


def searched(advantage, ratio, mask, target=1.0):
    signals = Signals.neutral(array(mask, bool), np.float64)
    signals = replace(signals, advantage=array(advantage, float))
    logp = jnp.log(array(ratio, float))
    context = Context(TokenStats(logp=logp), None, jnp.zeros_like(logp), None)
    return balance_signs(LOW, HIGH, target, EPSILON).apply(signals, context, ())[2]


@pytest.mark.thorough
@pytest.mark.parametrize("target", [0.5, 1.0, 1.1, 1.2, 1.3, 2.0])
def test_bounds_are_those_of_the_loop(target):
    random = np.random.default_rng(4)
    advantage = random.normal(0.03, 1, (6, 20))
    ratio = np.exp(random.normal(0.1, 0.6, (6, 20)))
    mask = random.random((6, 20)) < 0.8
    found = searched(advantage, ratio, mask, target)
    low, high, balance, steps = loop(advantage[mask], ratio[mask], target)
    np.testing.assert_allclose(found["bound_low"], low, rtol=1e-15)
    np.testing.assert_allclose(found["bound_high"], high, rtol=1e-15)
    np.testing.assert_allclose(found["balance_last"], balance, rtol=1e-12)
    assert found["search_steps"] == steps


@pytest.mark.parametrize(("sign", "bounds"), [(1.0, (0.6, 1.2)), (-1.0, (0.8, 2.0))])
def test_pushes_of_one_sign_search_nothing_or_everything(sign, bounds):
    ones = np.ones((2, 3))
    found = searched(sign * ones, ones, ones)
    assert (found["bound_low"], found["bound_high"]) == bounds


def test_a_batch_without_tokens_searches_nothing():
    zeros, ones = np.zeros((2, 3)), np.ones((2, 3))
    found = searched(zeros, ones, zeros)
    assert (found["bound_low"], found["bound_high"], found["balance_first"]) == (0.6, 1.2, 1e9)


def test_a_search_that_would_not_end_is_refused():
    with pytest.raises(ValueError, match="low must go up in at most 1000 steps"):
        balance_signs(Search(0.6, 0.8, 0.0), HIGH, 1.0)
    with pytest.raises(ValueError, match=r"low must be in \[0, 1\]"):
        balance_signs(Search(0.6, 1.8, 0.1), HIGH, 1.0)
