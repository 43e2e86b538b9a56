"""SALU: answers and abstentions by their confidence."""

import numpy as np
from reward_rows import rollouts

from rlvr_jax.methods.rewards.salu import confident_abstention


def test_a_row_is_penalized_where_its_reward_is_below_0():
    # answerable, abstained, confidence: a correct and an incorrect answer, an abstention, and an
    # answer to an unanswerable question.
    columns = [[1, 0, 0.9], [1, 0, 0.9], [1, 1, 0.2], [0, 0, 0.5]]
    batch = rollouts(columns, outcome=(1.0, 0.0, 0.0, 0.0))
    reward, _, metrics = confident_abstention().apply(batch, (), None)
    np.testing.assert_allclose(reward, [1, -0.9, -0.5, -0.75])
    assert float(metrics["reward/penalized"]) == 0.75
    assert float(metrics["reward/abstained"]) == 0.25


def test_rows_without_a_confidence_are_not_counted_as_penalized():
    columns = [[0, 1, 1.0], [1, 0, np.nan], [1, 0, 1.5], [1, 0, 0.0]]
    batch = rollouts(columns, outcome=(1.0, 0.0, 0.0, 1.0))
    reward, _, metrics = confident_abstention().apply(batch, (), None)
    np.testing.assert_array_equal(np.isnan(reward), [False, True, True, False])
    assert float(metrics["reward/penalized"]) == 0
