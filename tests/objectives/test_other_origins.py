"""Rows of another policy: rehearsed answers, demonstrations, capped weights."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import only
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.exploration.dph_rl import (
    alpha_generator,
    forward_kl_generator,
    jensen_shannon_generator,
    off_policy_divergence,
)
from rlvr_jax.methods.guidance.hpt import imitate_demonstrations, num_solved
from rlvr_jax.methods.off_policy.rapid import capped_rollout_weight

GENERATORS = (forward_kl_generator, jensen_shannon_generator, alpha_generator(0.2))


@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_are_silent_at_the_reference_and_positive_elsewhere(generator):
    log_u = jnp.asarray([-2.0, -0.1, 0.0, 0.1, 2.0])
    value, slope = jax.vmap(jax.value_and_grad(lambda x: generator(x, 0.0 * x, x)))(log_u)
    assert (np.asarray(value)[[0, 1, 3, 4]] > 0).all()
    assert abs(value[2]) < 1e-15 and abs(slope[2]) < 1e-15  # rounding of 1 - 1


@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_are_finite_without_gradient_where_they_are_clamped(generator):
    value, slope = jax.value_and_grad(lambda x: generator(x, 0.0 * x, x))(jnp.asarray(-300.0))
    assert np.isfinite(value) and slope == 0


def test_jensen_shannon_forgives_what_is_given_up():
    found = jensen_shannon_generator(*(jnp.asarray(x) for x in (-20.0, 0.0, 0.0)))
    np.testing.assert_allclose(found, np.log(2), rtol=1e-6)  # e^-20 is left


def test_without_rows_of_another_policy_there_is_nothing_to_hold_or_imitate():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    own = batch.replace(off_policy=batch.records["off_policy"] & False)
    for part in (off_policy_divergence(1.0, forward_kl_generator), imitate_demonstrations(1.0, 9)):
        done = golden.step(only(part).objective, stats, own)
        assert done.loss == 0 and not np.asarray(done.dstats.logp).any()


def test_demonstrations_do_not_count_as_solved():
    batch = golden.rollouts("b")
    solved = batch.replace(outcome=jnp.ones_like(batch.outcome))
    assert_agrees(num_solved(solved), np.full(12, 3))  # groups of 4 with one demonstration


def test_huge_ratios_are_capped_before_they_overflow():
    logp = array([[400.0, 400.0], [-1.0, 0.0]], np.float64)
    mask = array([[1, 1], [1, 0]], bool)
    weight = capped_rollout_weight(logp, jnp.zeros_like(logp), mask, 2.0)
    assert_agrees(weight, [2, np.exp(-1)])
