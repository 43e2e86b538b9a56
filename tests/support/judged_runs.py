"""Runs of a small model with a judge."""

import json

from training_runs import settings

FAIR = "own_judges:fair"


def judged(model, run_dir, judge, **changes):
    small = dict(method="rlbff", judge=judge, steps=2, evaluation_samples=1)
    return settings(model, run_dir, **{**small, **changes})


def samples(run_dir):
    return [
        json.loads(line)
        for path in sorted((run_dir / "samples").glob("*"))
        for line in path.read_text().splitlines()
    ]
