"""Importance weights without gradient: inside the bounds as PPO, outside at the bound."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import assert_agrees

from rlvr_jax.objectives import Context, importance_weighted
from rlvr_jax.objectives.surrogates.policy_gradient import weighted_reinforce
from rlvr_jax.types import Signals, replace


def slopes(surrogate):
    """d loss / d logp of each token, its ratio, and A = ± 1."""
    batch, logp = golden.rollouts("b"), golden.stats("b").logp
    signals = Signals.neutral(batch.mask, np.float64)
    signals = replace(signals, advantage=signals.advantage + 2 * batch.reward[:, None] - 1)

    def total(logp):
        stats = replace(golden.stats("b"), logp=logp)
        context = Context(stats, batch, batch.old_logp, None)
        prepared = surrogate.prepare(signals, context)
        values = jnp.where(batch.mask, surrogate.loss(prepared, context), 0)
        return jnp.sum(values), prepared

    slope, prepared = jax.grad(total, has_aux=True)(logp)
    return tuple(map(np.asarray, (slope, prepared.ratio, signals.advantage)))


def test_without_bounds_the_gradient_is_that_of_the_ratio():
    assert_agrees(slopes(weighted_reinforce())[0], slopes(importance_weighted())[0])


def test_outside_the_bounds_a_token_is_trained_with_the_bound_for_both_signs():
    plain, ratio, advantage = slopes(importance_weighted())
    capped, *_ = slopes(weighted_reinforce(low=0.1, high=0.1))
    for sign in (1, -1):
        assert ((np.abs(ratio - 1) > 0.1) & (advantage == sign)).any()
    assert_agrees(capped, plain * np.clip(ratio, 0.9, 1.1) / ratio)


def test_negative_bounds_are_refused():
    with pytest.raises(ValueError, match=r"weighted_reinforce: high must be at least 0, got -0\.1"):
        weighted_reinforce(high=-0.1)
