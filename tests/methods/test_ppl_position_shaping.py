"""Perplexity and position shaping: fluent responses, or late tokens, weigh more."""

import numpy as np
from golden_vectors import array

from rlvr_jax.methods.entropy.ppl_position_shaping import relative_position


def test_relative_position_counts_the_tokens_on_the_mask():
    mask = array([[0, 1, 0, 1], [0, 0, 0, 0]], bool)
    np.testing.assert_array_equal(relative_position(mask, float), [[0, 0.5, 0, 1], [0] * 4])
