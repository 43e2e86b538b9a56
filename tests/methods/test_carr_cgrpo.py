"""C-GRPO with CaRR: the part of a reward that depends on evidence."""

import numpy as np
from reward_rows import rollouts

from rlvr_jax.methods.rewards.carr_cgrpo import with_evidence


def test_a_correct_response_without_all_evidence_earns_less():
    batch = rollouts([[0.5], [0.25], [0.5], [0.0]], outcome=(1.0, 1.0, 0.0, 0.0))
    reward, _, metrics = with_evidence(0).apply(batch, (), None)
    # The group's largest is 0.5: 0.7 + 0.3 · (1, 0.5).
    np.testing.assert_allclose(reward, [1, 0.85, 0, 0])
    np.testing.assert_allclose(metrics["reward/withheld"], 0.15 / 4)


def test_without_its_weight_evidence_changes_nothing():
    batch = rollouts([[0.5], [0.25], [0.5], [0.0]])
    reward, _, metrics = with_evidence(0, fraction=0.0).apply(batch, (), None)
    np.testing.assert_array_equal(reward, batch.outcome)
    assert float(metrics["reward/withheld"]) == 0
