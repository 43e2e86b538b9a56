"""Soft trust regions against what they become in their limits."""

from typing import NamedTuple

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.agents.aepo_agentic import ppo_cap
from rlvr_jax.methods.clipping.f_dpg import product_ratio
from rlvr_jax.methods.clipping.gmpo import geometric_mean_clip, trusted_log_ratio
from rlvr_jax.methods.clipping.sapo import sigmoid_gate, sigmoid_gated
from rlvr_jax.objectives import Context, importance_weighted, ppo_clip
from rlvr_jax.objectives.statistics.ratios import sequence_ratio
from rlvr_jax.types import Signals, TokenStats, replace

ROUND_TRIP = 1e-13  # float64, through expm1 and log1p


class Run(NamedTuple):
    """Losses of the tokens, the gradient of the mean over rollouts of means over tokens, ratios."""

    values: np.ndarray
    slope: np.ndarray
    ratio: np.ndarray
    advantage: np.ndarray


def run(surrogate):
    """Runs a surrogate with A = ±1."""
    batch, logp = golden.rollouts("b"), golden.stats("b").logp
    signals = Signals.neutral(batch.mask, np.float64)
    signals = replace(signals, advantage=signals.advantage + 2 * batch.reward[:, None] - 1)
    length = np.asarray(batch.mask).sum(axis=1, keepdims=True).astype(float)

    def total(logp):
        stats = replace(golden.stats("b"), logp=logp)
        context = Context(stats, batch, batch.old_logp, None)
        prepared = surrogate.prepare(signals, context)
        values = jnp.where(batch.mask, surrogate.loss(prepared, context), 0)
        return jnp.sum(values / length), (values, prepared.ratio)

    slope, (values, ratio) = jax.grad(total, has_aux=True)(logp)
    return Run(*map(np.asarray, (values, slope, ratio, signals.advantage)))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_gate_has_slope_one_on_policy_and_fades_on_both_sides(temperature):
    slope = jax.vmap(jax.grad(sigmoid_gate), (0, None))(array([0.0, 1.0, 2.0], float), temperature)
    assert slope[1] == 1
    assert slope[0] < 1 and slope[2] < 1


def test_a_geometric_mean_without_limit_is_the_unclipped_sequence_ratio():
    found, wanted = run(geometric_mean_clip(np.inf)), run(importance_weighted(sequence_ratio))
    assert_agrees(found.values, wanted.values)
    assert_agrees(found.slope, wanted.slope)


def test_the_log_ratio_is_cut_on_the_side_it_is_pushed_to():
    signals = Signals.neutral(array(np.ones((1, 3)), bool), np.float64)
    for advantage, wanted in ((1.0, [-2, 0.1, 0.5]), (-1.0, [-0.5, 0.1, 2]), (0.0, [0, 0, 0])):
        limits = {"clip_low": -np.expm1(-0.5), "clip_high": np.expm1(0.5), "advantage": advantage}
        full = {name: jnp.full_like(signals.weight, value) for name, value in limits.items()}
        found = trusted_log_ratio(replace(signals, **full), array([[-2, 0.1, 2]], float))
        np.testing.assert_allclose(found[0], wanted, rtol=ROUND_TRIP)


def test_the_cap_has_the_value_of_the_clip_and_keeps_the_gradient_above_it():
    capped, clipped = run(ppo_cap(0.2, 0.2, 3.0)), run(ppo_clip(0.2, 0.2, dual=3.0))
    assert_agrees(capped.values, clipped.values)
    above = (clipped.ratio > 1.2) & (clipped.advantage > 0)
    assert above.any() and not clipped.slope[above].any()
    np.testing.assert_array_equal(capped.slope[~above], clipped.slope[~above])
    free = run(importance_weighted())
    frozen = (free.slope * 1.2 / free.ratio)[above]
    assert_agrees(capped.slope[above], frozen)


@pytest.mark.parametrize(
    ("surrogate", "advantage", "value", "slope"),
    [
        (ppo_cap(0.2, 0.25, 3.0), 2.0, -2.5, -2.5),
        (ppo_clip(0.2, 0.25), 2.0, -2.5, 0),
        (ppo_clip(0.2, 0.25, ratio=product_ratio), 2.0, -2.5, 0),
        (ppo_clip(0.2, 0.25), 0.0, 0, 0),
        (ppo_clip(0.2, 0.25), -2.0, np.inf, np.inf),
        (ppo_clip(0.2, 0.25, dual=3.0), -2.0, 6, 0),
    ],
)
def test_a_ratio_that_overflows_reaches_only_a_loss_that_depends_on_it(
    surrogate, advantage, value, slope
):
    signals = Signals.neutral(array([[True]], bool), np.float32)
    signals = replace(signals, advantage=array([[advantage]], np.float32))

    def loss(logp):
        context = Context(TokenStats(logp=logp), None, jnp.zeros_like(logp), None)
        return surrogate.loss(surrogate.prepare(signals, context), context)[0, 0]

    found = jax.value_and_grad(loss)(array([[100.0]], np.float32))
    assert (float(found[0]), float(found[1][0, 0])) == (value, slope)


@pytest.mark.parametrize(
    "make", [lambda: sigmoid_gated(0.0, 1.0), lambda: geometric_mean_clip(0.0)]
)
def test_widths_that_are_not_positive_are_refused(make):
    with pytest.raises(ValueError, match=r"must be positive, got 0\.0"):
        make()
