"""STEER: damp the tokens whose update would change the entropy most."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import recipe


def test_a_batch_of_equal_rewards_is_weighed_in_the_middle():
    batch = golden.rollouts("b")
    batch = batch.replace(reward=jnp.full_like(batch.reward, 0.1))
    done = golden.step(recipe("steer").objective, golden.stats("b"), batch)
    np.testing.assert_array_equal(done.signals.weight[batch.mask], (0.8 + 1.2) / 2)
