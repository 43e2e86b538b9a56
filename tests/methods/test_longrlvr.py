"""LongRLVR: in a long context, pays a response also for citing the relevant chunks."""

import numpy as np
from golden_vectors import array
from reward_rows import rollouts

from rlvr_jax.methods.rewards.longrlvr import f_score, grounded

EXACT = 1e-12  # float64, a few operations


def test_no_citation_and_a_citation_of_all_have_a_score():
    found = f_score(array([0.0, 1.0, 0.04], float), array([0.0, 1.0, 1.0], float), 2.0)
    np.testing.assert_allclose(found, [0, 1, 5 * 0.04 / 1.16], atol=EXACT)


def test_citations_add_to_correct_and_incorrect_responses():
    # P, R and the format; F_2 = 5 · 0.5 · 1 / (4 · 0.5 + 1) = 5 / 6 in the second row.
    columns = [[1.0, 1.0, 1.0], [0.5, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]
    batch = rollouts(columns, outcome=(1.0, 1.0, 0.0, 0.0))
    reward, _, metrics = grounded(0, 1, 2).apply(batch, (), None)
    np.testing.assert_allclose(reward, [2, 1 + 5 / 6, 0.1, 0], atol=EXACT)
    added = (1 + 5 / 6 + 0.1) / 4
    np.testing.assert_allclose(metrics["reward/citations"], added, atol=EXACT)
