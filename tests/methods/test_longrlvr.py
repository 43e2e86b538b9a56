"""LongRLVR: in a long context, pays a response also for citing the relevant chunks."""

import numpy as np
from golden_vectors import array

from rlvr_jax.methods.rewards.longrlvr import f_score

EXACT = 1e-12  # float64, a few operations


def test_no_citation_and_a_citation_of_all_have_a_score():
    found = f_score(array([0.0, 1.0, 0.04], float), array([0.0, 1.0, 1.0], float), 2.0)
    np.testing.assert_allclose(found, [0, 1, 5 * 0.04 / 1.16], atol=EXACT)
