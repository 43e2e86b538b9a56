"""HAPO: one score from the entropy of a token decides its credit and its trust region."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import recipe_of
from golden_vectors import array

from rlvr_jax.methods.entropy.hapo import entropy_score, token_normalized
from rlvr_jax.objectives import reinforce

BATCH, STATS = golden.rollouts("b"), golden.stats("b")


def test_entropy_scores_of_equal_entropies_are_0():
    assert not entropy_score(jnp.full_like(BATCH.entropy, 0.3), BATCH.mask, BATCH, 0.8).any()


@pytest.mark.thorough
def test_a_lonely_reward_against_many_tokens_falls_back_to_the_rollouts():
    mask = array(np.arange(9)[None] < np.array([9] * 11 + [0])[:, None], bool)
    mask = mask.at[11, 0].set(True)
    reward = jnp.zeros(12).at[11].set(1.0)
    batch = BATCH.replace(mask=mask, reward=reward, group=jnp.zeros_like(BATCH.group))

    def normalized(limit):
        own = recipe_of(token_normalized(limit), reinforce()).objective
        done = golden.step(own, STATS, batch)
        return done.metrics["fell_back_fraction"], done.signals.advantage[11, 0]

    fell_back, advantage = normalized(limit=5.0)
    assert fell_back == 1
    np.testing.assert_allclose(advantage, (11 / 12) / (np.sqrt(1 / 12) + 1e-6))
    assert normalized(limit=50.0)[0] == 0
