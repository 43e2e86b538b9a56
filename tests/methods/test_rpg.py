"""Divergences from the old policy: definitions, and the branches of the clip."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.clipping.rpg import (
    forward_kl,
    regularized_clip,
    reverse_kl,
    unnormalized_forward_kl,
    unnormalized_reverse_kl,
)
from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace

PENALTIES = {  # of log ratios d
    forward_kl: lambda d: -d,
    reverse_kl: lambda d: jnp.exp(d) * d,
    unnormalized_forward_kl: lambda d: jnp.expm1(d) - d,
    unnormalized_reverse_kl: lambda d: jnp.exp(d) * d - jnp.expm1(d),
}


@pytest.mark.parametrize("divergence", PENALTIES)
def test_the_push_is_the_slope_of_the_penalty(divergence):
    d = array([-2.0, -0.1, 0.0, 0.3, 1.5], float)
    slope = jax.vmap(jax.grad(PENALTIES[divergence]))(d)
    np.testing.assert_allclose(jnp.exp(d) * divergence(d), -slope, rtol=0, atol=1e-14)


def run(advantage, ratios):
    """Values and slopes of the clip at tokens of the given ratios, all of log-prob -1."""
    ratios = np.asarray(ratios, float)[None]
    shape = ratios.shape
    batch = golden.rollouts("b")
    surrogate = regularized_clip(reverse_kl, 0.0, 0.2, 0.3, dual=4.0)

    def total(logp):
        signals = Signals.neutral(array(np.ones(shape), bool), np.float64)
        signals = replace(signals, advantage=jnp.full(shape, advantage))
        stats = replace(golden.stats("b"), logp=logp)
        context = Context(stats, batch, array(-1 - np.log(ratios), float), None)
        values = surrogate.loss(surrogate.prepare(signals, context), context)
        return jnp.sum(values), values

    slope, values = jax.grad(total, has_aux=True)(array(np.full(shape, -1.0), float))
    return np.asarray(values)[0], np.asarray(slope)[0]


@pytest.mark.parametrize(
    ("advantage", "bounds", "trained"),
    [(2.0, [0.5, 1, 1.3, 1.3], [1, 1, 0, 0]), (-2.0, [0.8, 1, 2, 4], [0, 1, 1, 0])],
)
def test_each_branch_of_the_clip(advantage, bounds, trained):
    values, slope = run(advantage, [0.5, 1.0, 2.0, 9.0])
    assert_agrees(values, advantage * np.array(bounds))
    assert_agrees(slope, -advantage * np.array(bounds) * np.array(trained))


def test_a_negative_coefficient_is_refused():
    with pytest.raises(ValueError, match="coefficient must be at least 0, got -1"):
        regularized_clip(reverse_kl, -1, 0.2, 0.3, dual=4.0)
