"""Returns and generalized advantages against their definitions, on masks with holes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.objectives.critics import value_loss
from rlvr_jax.objectives.returns import (
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


def by_definition(discount, trace_decay):
    """Generalized advantages over the tokens on the mask, as if the others did not exist."""
    found = np.zeros(MASK.shape)
    for row in range(4):
        places = np.flatnonzero(MASK[row])
        following, value = 0.0, 0.0
        for t in reversed(places):
            error = REWARDS[row, t] + discount * value - VALUES[row, t]
            following = error + discount * trace_decay * following
            value, found[row, t] = VALUES[row, t], following
    return found


@pytest.mark.parametrize(("discount", "trace_decay"), [(1.0, 1.0), (0.9, 0.8), (1.0, 0.0)])
def test_generalized_advantages_skip_what_is_off_the_mask(discount, trace_decay):
    found = generalized_advantages(
        poisoned(REWARDS), poisoned(VALUES), jnp.asarray(MASK), discount, trace_decay
    )
    np.testing.assert_allclose(found, by_definition(discount, trace_decay), atol=ATOL)


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
