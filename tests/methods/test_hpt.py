"""HPT: reinforcement where the policy solves the prompt, imitation where it does not."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from golden_vectors import assert_agrees

from rlvr_jax.methods.guidance.hpt import num_solved
from rlvr_jax.types import replace


def test_demonstrations_do_not_count_as_solved():
    batch = golden.rollouts("b")
    solved = replace(batch, outcome=jnp.ones_like(batch.outcome))
    assert_agrees(num_solved(solved), np.full(12, 3))  # groups of 4 with one demonstration
