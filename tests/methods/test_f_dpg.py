"""Targets of whole responses: the partition function, the divergences and the baseline."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.clipping.f_dpg import (
    BaselineState,
    log_partition,
    pseudo_reward,
    target_chi_squared,
    target_jensen_shannon,
    target_kl,
    target_reverse_chi_squared,
    target_reverse_kl,
    target_total_variation,
)
from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace

GENERATORS = {
    target_kl: lambda t: -jnp.log(t),
    target_reverse_kl: lambda t: t * jnp.log(t),
    target_jensen_shannon: lambda t: t * jnp.log(2 * t / (1 + t)) + jnp.log(2 / (1 + t)),
    target_chi_squared: lambda t: 1 / t + t - 2,
    target_reverse_chi_squared: lambda t: (t - 1) ** 2,
    target_total_variation: lambda t: jnp.abs(t - 1) / 2,
}


@pytest.mark.parametrize("divergence", GENERATORS)
def test_the_pseudo_reward_is_minus_the_slope_of_the_generator(divergence):
    t = array([0.2, 0.7, 1.5, 4.0], float)
    slope = jax.vmap(jax.grad(GENERATORS[divergence]))(t)
    np.testing.assert_allclose(divergence(jnp.log(t)), -slope, rtol=1e-12)


@pytest.mark.parametrize("divergence", GENERATORS)
def test_far_ratios_are_finite_in_float32(divergence):
    assert np.isfinite(divergence(array([-500.0, 500.0], np.float32))).all()


def test_the_partition_function_is_the_mean_of_its_group_and_survives_large_logs():
    weights, group = np.array([1.0, 3.0, 5.0]), array([4, 4, 1], np.int32)
    found = log_partition(array(np.log(weights) + 800, float), group, array(np.ones(3), bool))
    np.testing.assert_allclose(found, np.log([2, 2, 5]) + 800, rtol=1e-14)


def test_the_reverse_kl_is_the_return_with_a_kl_penalty():
    random = np.random.default_rng(0)
    logp, old, reference = (array(random.normal(-5, 1, 4), float) for _ in range(3))
    reward, group = array([0, 1, 1, 0], float), array([0, 0, 0, 0], np.int32)
    log_target = reference + reward / 0.5
    log_z = log_partition(log_target - old, group, array(np.ones(4), bool))
    own = target_reverse_kl(logp - log_target + log_z)
    penalized = (reward - 0.5 * (logp - reference)) / 0.5
    np.testing.assert_allclose(own - own[0], penalized - penalized[0], rtol=0, atol=1e-13)


def test_the_partition_function_is_that_of_rows_with_tokens():
    weights, group = np.array([1.0, 3.0, 9.0, 5.0]), array([4, 4, 4, 1], np.int32)
    counted = array([1, 1, 0, 0], bool)
    found = log_partition(array(np.log(weights), float), group, counted)
    np.testing.assert_allclose(found, [np.log(2)] * 3 + [0], rtol=1e-14)


@pytest.mark.thorough
def test_the_baseline_is_the_mean_of_the_last_pseudo_rewards():
    random, sampled = np.random.default_rng(0), []
    state = BaselineState(jnp.zeros(5), jnp.zeros((), jnp.int32))
    assert state.mean == 0
    for rows in (3, 4, 0, 1, 12, 2):
        rewards, written = random.normal(size=rows + 2), random.permutation([1] * rows + [0, 0])
        rollout_id = random.permutation(rows + 2)
        ordered = np.argsort(rollout_id)
        sampled += [rewards[i] for i in ordered if written[i]]
        state = state.followed_by(
            array(rewards, float), array(written, bool), array(rollout_id, np.int32)
        )
        np.testing.assert_allclose(state.mean, np.mean(sampled[-5:]), rtol=1e-12)
        assert state.count < 10


@pytest.mark.thorough
def test_the_baseline_is_read_before_it_moves_and_stays_without_tokens():
    batch = golden.rollouts("b")
    context = Context(golden.stats("b"), batch, batch.old_logp, None)
    signals = Signals.neutral(batch.mask, np.float64)
    own = pseudo_reward(target_reverse_kl, 1.0, window=20)
    free, first, metrics = own.apply(signals, context, own.init(None))
    rows = batch.mask.shape[0]
    assert first.count == rows and metrics["baseline"] == 0
    assert_agrees(first.mean, metrics["pseudo_reward"])
    full = BaselineState(jnp.full(20, 3.0), jnp.asarray(20, jnp.int32))
    held, second, _ = own.apply(signals, context, full)
    assert_agrees((free.advantage - held.advantage)[:, 0], np.full(rows, 3.0))
    assert_agrees(second.mean, ((20 - rows) * 3 + rows * first.mean) / 20)
    _, same, _ = own.apply(replace(signals, mask=batch.mask & False), context, second)
    jax.tree.map(np.testing.assert_array_equal, same, second)


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        pseudo_reward(target_kl, 0, 10)
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        pseudo_reward(target_kl, 1.0, 0)
