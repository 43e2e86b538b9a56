"""CFT: supervised learning of critiques of many solutions to one problem."""

import json

import pytest
import training_runs

from experiments import critiques
from rlvr_jax.tasks import load
from rlvr_jax.tasks.brackets import BASE_MODEL


@pytest.mark.slow
def test_training_imitates_the_critiques_of_the_command(tmp_path, monkeypatch):
    file = tmp_path / "critiques.jsonl"
    own = ["--task", "brackets:train=24", "--model", BASE_MODEL, "--candidates", "32"]
    critic = ["--critics", "rlvr_jax.tasks.brackets_judge:critique"]
    critiques.main([*own, "--problems", "0", "20", *critic, "--out", str(file)])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    task = load(f"critiques:{file}")
    texts = [prompt.text for prompt in (*task.train, *task.test)] + [r["critique"] for r in rows]
    words = sorted({word for text in texts for word in text.split()})
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS[:3], *words])
    model = training_runs.write_policy(tmp_path / "model", max_positions=512)
    config = training_runs.settings(
        model,
        tmp_path / "run",
        task=f"critiques:{file}",
        method="critique_ft",
        samples_per_prompt=1,
        response_tokens=64,
        steps=6,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    losses = training_runs.values(steps, "imitation_loss")
    assert losses[-1] < losses[0]
    assert min(training_runs.values(steps, "experience/imitated_solutions")) == 4
    assert min(training_runs.values(steps, "imitated_tokens")) > 0
