"""GAR: rewards the writer of statements for hard provable ones, and the prover for proofs."""

import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stages.problems.written import WRITE


def test_all_statements_of_a_step_are_compared_and_only_hard_ones_train_the_prover():
    proved = 0
    for collected, _, _ in walked("gar", 8, numpy_actor.NumpyActor(chance=0.3)):
        batch, rollouts = collected.batch, collected.batch.rollouts
        first = batch.groups[0]
        assert (rollouts.records["cell"][first] == WRITE).all() and len(first) == 4
        assert len({batch.requests[row].number for row in first}) == 4
        for rows in batch.groups[1:]:
            assert 0 < rollouts.outcome[rows].mean() <= 0.5
            assert batch.requests[rows[0]].number >= 12 and len(rows) == 4
            proved += 1
        assert ((rollouts.reward[first] >= 0) & (rollouts.reward[first] < 1)).all()
    assert proved > 0


@pytest.mark.slow
def test_training_on_fused_statements(tmp_path):
    steps = training_runs.on_brackets("gar", tmp_path, steps=3)
    assert max(training_runs.values(steps, "experience/fused")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
