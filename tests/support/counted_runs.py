"""Runs with counted answers before and after training."""

import json

import numpy as np
from analysis_runs import write_run
from safetensors.numpy import save_file

PROBLEMS = 60
WEIGHT = "model.layers.{}.mlp.up_proj.weight"


def counts(correct, step=0, n=16):
    correct = np.asarray(correct).tolist()
    prompts = list(range(len(correct)))
    return {"step": step, "n": n, "prompts": prompts, "correct": correct}


def write_counted(path, after, **changes):
    """A run with evaluations by problem, outcomes of its groups, and weights before and after."""
    model = path.parent / f"{path.name}_model"
    run = write_run(path, model=str(model), **changes)
    lines = [counts(np.full(PROBLEMS, 4)), counts(after, step=60)]
    (run / "held_out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with (run / "outcomes.jsonl").open("w") as file:
        for step in range(1, 11):
            correct = [1.0] * step + [0.0] * (10 - step)
            line = {"step": step, "number": [0, 1], "view": ["plain", "plain"]}
            file.write(json.dumps(line | {"outcome": [correct, [None] * 10]}) + "\n")
    for folder, scale in ((model, 0.0), (run / "policy", 0.01)):
        noise = np.random.default_rng(1).normal(size=(2, 8, 8))
        tensors = np.eye(8) + scale * noise
        folder.mkdir()
        save_file(
            {WEIGHT.format(i): tensor.astype(np.float32) for i, tensor in enumerate(tensors)},
            folder / "model.safetensors",
        )
    return run
