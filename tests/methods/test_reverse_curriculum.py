"""R³: responses that begin near the end of a worked solution, where a success is near."""

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.methods.guidance.reverse_curriculum import given_steps


def test_all_but_the_last_steps_are_given_and_at_last_none():
    steps = np.array([3, 1])
    assert [given_steps(steps, stage).tolist() for stage in (1, 2, 3, 4)] == [
        [2, 0],
        [1, 0],
        [0, 0],
        [0, 0],
    ]


@pytest.mark.parametrize("per_stage", [0, 2])
def test_responses_begin_near_the_end_of_a_solution(per_stage):
    fractions = []
    for collected, told, _ in walked("reverse_curriculum", 8, per_stage=per_stage):
        rollouts = collected.batch.rollouts
        given = (
            rollouts.records["origin"] == 3
            if "origin" in rollouts.records
            else rollouts.mask & False
        )
        assert not (rollouts.mask & given).any()
        incorrect = (rollouts.outcome == 0) & ~rollouts.truncated
        assert set(rollouts.reward.tolist()) <= {0.0, np.float32(0.2), 1.0}
        assert (rollouts.reward[incorrect] == np.float32(0.2)).all()
        fractions.append(told["given_fraction"])
    if per_stage:
        assert fractions == [0.75, 0.75, 0.5, 0.5, 0.25, 0.25, 0.0, 0.0]
    else:
        assert len(set(fractions)) > 2


@pytest.mark.slow  # ten seconds
def test_training_from_near_the_end(tmp_path):
    steps = training_runs.on_brackets("reverse_curriculum", tmp_path, steps=3)
    assert max(training_runs.values(steps, "experience/given_fraction")) > 0
    assert max(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
