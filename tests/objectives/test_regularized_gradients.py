"""Divergences from the old policy: definitions, and the branches of the clip."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.clipping.rpg import (
    forward_kl,
    old_policy_kl,
    regularized_clip,
    reverse_kl,
    unnormalized_forward_kl,
    unnormalized_reverse_kl,
)
from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace

ALL = [forward_kl, reverse_kl, unnormalized_forward_kl, unnormalized_reverse_kl]


@pytest.mark.parametrize("divergence", ALL, ids=str)
def test_the_push_is_the_slope_of_the_penalty(divergence):
    d = array([-2.0, -0.1, 0.0, 0.3, 1.5], float)
    slope = jax.vmap(jax.grad(divergence.penalty))(d)
    np.testing.assert_allclose(jnp.exp(d) * divergence.push(d), -slope, rtol=0, atol=1e-14)


@pytest.mark.parametrize("divergence", [unnormalized_forward_kl, unnormalized_reverse_kl], ids=str)
def test_unnormalized_penalties_are_never_negative_and_flat_on_policy(divergence):
    d = array(np.linspace(-3, 3, 13), float)
    assert (divergence.penalty(d) >= 0).all()
    assert jax.grad(divergence.penalty)(0.0) == 0


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


def test_a_clamped_penalty_has_no_gradient():
    batch = golden.rollouts("b")
    held = old_policy_kl(reverse_kl, 1.0, limit=0.01)

    def total(logp):
        context = Context(replace(golden.stats("b"), logp=logp), batch, batch.old_logp, None)
        signals, *_ = held.apply(Signals.neutral(batch.mask, np.float64), context, ())
        return jnp.sum(signals.penalty), signals.penalty

    slope, penalty = jax.grad(total, has_aux=True)(golden.stats("b").logp)
    clamped = np.abs(np.asarray(penalty)) == 0.01
    assert clamped.any() and not clamped.all()
    assert not np.asarray(slope)[clamped].any()


def test_a_negative_coefficient_is_refused():
    with pytest.raises(ValueError, match="coefficient must be at least 0, got -1"):
        old_policy_kl(reverse_kl, -1)
