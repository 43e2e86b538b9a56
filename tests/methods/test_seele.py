"""SEELE: every prompt shows as much of its solution as makes half of the responses correct."""

import pytest
import training_runs


@pytest.mark.slow
def test_training_searches_for_hints(tmp_path):
    steps = training_runs.on_brackets("seele", tmp_path)
    shares = training_runs.values(steps, "experience/hint_fraction")
    assert all(0 <= share <= 1 for share in shares) and shares[0] < 10 / 11
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    # Sampler and scorer agree on what was drawn, whatever was given.
    assert max(training_runs.values(steps, "sampler_ratio/max")) < 1.001
