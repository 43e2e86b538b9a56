"""DCPO: pull correct responses towards a hotter or a colder policy, as the entropy requires."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import assert_agrees

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.dcpo import mixture_weight

BATCH, STATS = golden.rollouts("b"), golden.stats("b")


def test_without_a_good_rollout_nothing_is_mixed_in():
    four = jnp.ones(4, bool)
    none = mixture_weight(jnp.asarray(0.0), 0.5, jnp.zeros(4, bool), four, 0.1)
    assert none == 0
    half = mixture_weight(jnp.asarray(0.0), 0.5, jnp.arange(4) < 2, four, 0.1)
    np.testing.assert_allclose(half, 0.2 / 1.2)


@pytest.mark.thorough
def test_the_entropy_estimate_follows_the_batch_and_stays_without_tokens():
    own = recipe("dcpo").objective
    first = golden.step(own, STATS, BATCH)
    assert_agrees(first.state["mix_in_tempered_policy"].entropy, -BATCH.old_logp[BATCH.mask].mean())
    empty = BATCH.replace(mask=jnp.zeros_like(BATCH.mask))
    after = golden.step(own, STATS, empty, state=first.state)
    assert after.state == first.state
