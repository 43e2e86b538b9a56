"""Sizes and rollouts for models that are not the library's."""

import jax.numpy as jnp
import numpy as np

from rlvr_jax.types import Rollouts

VOCABULARY, ROWS, WIDTH = 7, 16, 3


# Sums of some hundred terms in another order, against the largest.
ROUNDING = 1e-12


def some_rollouts(score, params):
    """Four groups of four, of several lengths, drawn by a policy a little off."""
    random = np.random.default_rng(3)
    tokens = jnp.asarray(random.integers(0, VOCABULARY, (ROWS, WIDTH)))
    mask = jnp.asarray(np.arange(WIDTH) < random.integers(1, WIDTH + 1, (ROWS, 1)))
    reward = jnp.asarray(random.integers(0, 2, ROWS), jnp.float64)
    group = jnp.arange(ROWS, dtype=jnp.int32) // 4
    made = Rollouts.of_responses(tokens, mask, reward, group)
    then = score(params, made).logp + jnp.asarray(random.normal(0, 0.2, mask.shape))
    return made.replace(old_logp=jnp.where(mask, then, 0))
