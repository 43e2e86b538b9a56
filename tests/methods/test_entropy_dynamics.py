"""The predicted change of the entropy is its derivative; weights and drops at their edges."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.entropy_dynamics import (
    drop_entropy_lowering,
    entropy_discriminator,
    expected_discriminator,
)

RTOL = 1e-9  # float64; differences of sums over a vocabulary of 13


def entropy_of(logits):
    logp = jax.nn.log_softmax(logits)
    return -jnp.sum(jnp.exp(logp) * logp)


def test_discriminators_are_derivatives_of_the_entropy():
    logits = jnp.asarray(golden.inputs("b")["logits"][0, 0])
    logp = jax.nn.log_softmax(logits)
    p, entropy = jnp.exp(logp), entropy_of(logits)
    value = entropy_discriminator(logp, entropy)
    np.testing.assert_allclose(-value, jax.grad(entropy_of)(logits), rtol=RTOL)
    expected = expected_discriminator(entropy, jnp.sum(p**2), jnp.sum(p**2 * logp))
    for token in (0, 5):
        step = jax.nn.one_hot(token, logits.size) - p  # the policy gradient at this token
        _, change = jax.jvp(entropy_of, (logits,), (-0.7 * step,))
        found = 0.7 * (value[token] - expected)
        np.testing.assert_allclose(found, change, rtol=RTOL)


def test_equal_tokens_are_all_kept():
    batch = golden.rollouts("b")
    equal = batch.replace(
        old_logp=jnp.full_like(batch.old_logp, -2.0),
        entropy=jnp.full_like(batch.entropy, 0.5),
    )
    own = recipe("entropy_dynamics", batch_deviations=0.0).objective
    done = golden.step(own, golden.stats("b"), equal)
    np.testing.assert_array_equal(done.signals.mask, batch.mask)
    done = golden.step(own, golden.stats("b"), batch)
    assert done.signals.mask.sum() < batch.mask.sum()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="deviations must be at least 0, got -1"):
        drop_entropy_lowering(-1)
    with pytest.raises(ValueError, match=r"low must be in \[0, high 0.5\], got 0.8"):
        recipe("steer", weight_high=0.5)
