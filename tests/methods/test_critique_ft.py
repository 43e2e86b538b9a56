"""CFT: supervised learning of critiques of many solutions to one problem."""

import critique_task
import pytest
import training_runs


@pytest.mark.slow
def test_training_imitates_critiques(tmp_path, monkeypatch):
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, *critique_task.WORDS])
    model = training_runs.write_policy(tmp_path / "model")
    config = training_runs.settings(
        model,
        tmp_path / "run",
        task="critique_task:critiques",
        method="critique_ft",
        samples_per_prompt=1,
        steps=4,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    losses = training_runs.values(steps, "imitation_loss")
    assert losses[-1] < losses[0]
    assert min(training_runs.values(steps, "experience/imitated_solutions")) == 4
    assert min(training_runs.values(steps, "imitated_tokens")) > 0
