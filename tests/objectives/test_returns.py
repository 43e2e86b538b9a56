"""Returns and generalized advantages against their definitions, on masks with holes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.objectives.advantages.critics import value_loss
from rlvr_jax.objectives.advantages.returns import (
    discounted_returns,
    generalized_advantages,
    is_last_token,
    token_rewards,
)

ATOL = 1e-14  # float64, sums of six terms of order one
RANDOM = np.random.default_rng(0)
ROWS = ([1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0])
MASK = np.array(ROWS, bool)
REWARDS, VALUES, LOG_RATIO = RANDOM.normal(size=(3, 4, 6))
OUTCOME = RANDOM.normal(size=4)


def poisoned(values):
    return jnp.asarray(np.where(MASK, values, np.nan))


def by_definition(rewards, values, mask, discount, trace_decay):
    """Generalized advantages over the tokens on the mask, as if the others did not exist."""
    found = np.zeros(mask.shape)
    for row in range(mask.shape[0]):
        places = np.flatnonzero(mask[row])
        following, value = 0.0, 0.0
        for t in reversed(places):
            error = rewards[row, t] + discount * value - values[row, t]
            following = error + discount * trace_decay * following
            value, found[row, t] = values[row, t], following
    return found


@pytest.mark.parametrize(("discount", "trace_decay"), [(1.0, 1.0), (0.9, 0.8), (1.0, 0.0)])
def test_generalized_advantages_skip_what_is_off_the_mask(discount, trace_decay):
    found = generalized_advantages(
        poisoned(REWARDS), poisoned(VALUES), jnp.asarray(MASK), discount, trace_decay
    )
    wanted = by_definition(REWARDS, VALUES, MASK, discount, trace_decay)
    np.testing.assert_allclose(found, wanted, atol=ATOL)


@pytest.mark.thorough
@pytest.mark.parametrize("width", [32, 33, 100])
def test_sums_run_over_all_blocks_of_a_long_row(width):
    random = np.random.default_rng(width)
    rewards, values = random.normal(size=(2, 3, width))
    mask = random.random((3, width)) < [[0.9], [0.1], [1.0]]
    arrays = jnp.asarray(rewards), jnp.asarray(values), jnp.asarray(mask)
    found = generalized_advantages(*arrays, 1.0, 1.0)
    wanted = by_definition(rewards, values, mask, 1.0, 1.0)
    np.testing.assert_allclose(found, wanted, atol=width * ATOL)
    found = discounted_returns(arrays[0], arrays[2], 0.9)
    powers = 0.9 ** np.maximum(np.arange(width) - np.arange(width)[:, None], 0)
    wanted = np.where(mask, np.where(mask, rewards, 0) @ np.tril(powers.T), 0)
    np.testing.assert_allclose(found, wanted, atol=width * ATOL)


def test_returns_count_positions():
    found = discounted_returns(poisoned(REWARDS), jnp.asarray(MASK), 0.9)
    wanted = REWARDS[1, 1] + 0.9**2 * REWARDS[1, 3] + 0.9**3 * REWARDS[1, 4]
    np.testing.assert_allclose(found[1, 1], wanted, atol=ATOL)
    assert not np.asarray(found)[~MASK].any()


def test_the_outcome_stands_on_the_last_token_and_the_price_on_all():
    last = np.asarray(is_last_token(jnp.asarray(MASK)))
    np.testing.assert_array_equal(np.argwhere(last), [[0, 5], [1, 4], [3, 2]])
    found = token_rewards(jnp.asarray(OUTCOME), jnp.asarray(MASK), poisoned(LOG_RATIO), 0.1)
    wanted = np.where(MASK, -0.1 * LOG_RATIO + last * OUTCOME[:, None], 0)
    np.testing.assert_allclose(found, wanted, atol=ATOL)


def test_the_clipped_value_loss_is_flat_beyond_its_bound():

    values, old, returns = (
        jnp.asarray([0.5, 0.5, 0.1, 0.2]),
        jnp.zeros(4),
        jnp.asarray([1.0, -1.0, 1.0, 1.0]),
    )
    gradient = jax.grad(lambda v: jnp.sum(value_loss(v, old, returns, 0.2)))(values)
    # Moved too far towards the return: flat. Too far away from it, inside, on the bound: V - G.
    np.testing.assert_allclose(gradient, [0.0, 1.5, -0.9, -0.8], atol=ATOL)
