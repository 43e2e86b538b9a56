"""SEED-GRPO: smaller steps on prompts whose answers disagree."""

import numpy as np
from golden_vectors import array

from rlvr_jax.methods.exploration.seed_grpo import relative_semantic_entropy
from rlvr_jax.objectives import semantic_entropy


def test_semantic_entropy_is_0_for_one_answer_and_largest_for_equally_likely_ones():
    group = array([0, 0, 0, 1, 1, 1, 2], np.int32)
    answer = array([4, 4, 4, 0, 1, 2, 9], np.int32)
    loglik = array([-1.0, -2.0, -0.3, -0.5, -0.5, -0.5, -3.0], float)
    found = semantic_entropy(loglik, answer, group)
    np.testing.assert_allclose(found, [0, 0, 0, *3 * [np.log(3)], 0], rtol=1e-15)
    fraction = relative_semantic_entropy(loglik, answer, group)
    np.testing.assert_allclose(fraction, [0, 0, 0, 1, 1, 1, 0], rtol=1e-15)
