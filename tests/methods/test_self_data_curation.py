"""SELF: train only on prompts that greedy decoding does not solve, and stay near the base model."""

import pytest
import training_runs
from walks import walked


def test_prompts_that_are_solved_greedily_are_left_out():
    kept = 0
    for collected, _, _ in walked("self_data_curation", 6):
        first = collected.seen[0]
        assert first.rollouts.temperature.max() < 1e-3 and len(first) == 4
        open_ = [
            first.requests[rows[0]].number
            for rows in first.groups
            if first.rollouts.outcome[rows] < 1
        ]
        batch = collected.batch
        if open_:
            assert [batch.requests[rows[0]].number for rows in batch.groups] == open_
            assert [len(rows) for rows in batch.groups] == [4] * len(open_)
            assert batch.rollouts.temperature.min() == 1
        else:
            assert not batch.rollouts.mask.any()
        assert collected.metrics["solved_greedily"] == 1 - len(open_) / 4
        kept += len(open_)
    assert 0 < kept < 24


def test_further_prompts_fill_the_batch():
    for collected, _, _ in walked("self_data_curation", 4, rounds=4):
        assert len(collected.batch.groups) == 4 or len(collected.seen) >= 4


@pytest.mark.slow
def test_training_on_what_is_not_solved_greedily(tmp_path):
    steps = training_runs.on_brackets("self_data_curation", tmp_path)
    assert max(training_runs.values(steps, "experience/solved_greedily")) > 0
    assert len(training_runs.values(steps, "statistic_penalty/reverse_kl")) == 2
    assert max(training_runs.values(steps, "gradient_norm")) > 0
