"""RECAP: among several objectives, those that still change or fluctuate get larger weights."""

import pytest
import training_runs


@pytest.mark.slow
def test_training_weighs_kinds_by_how_they_move(tmp_path):
    given = ("window=1", "temperature=0.1")
    steps = training_runs.on_brackets("recap", tmp_path, steps=4, hyperparameters=given)
    most = training_runs.values(steps, "objective_weight/max")
    least = training_runs.values(steps, "objective_weight/min")
    assert most[0] == least[0] == 1 and max(most) > 1 > min(least)
    changed = training_runs.values(steps, "reweighted_fraction")
    assert [each > 1 for each in most] == [each > 0 for each in changed]
    assert most[-1] + least[-1] == pytest.approx(2, rel=1e-5)  # two kinds, whose mean is 1
    assert max(training_runs.values(steps, "gradient_norm")) > 0
