"""Settings that differ by task and method: the one place where they stand.

A command line starts from `TrainConfig`, then the task's preset, then the method's on that task;
what is given on the command line wins. The published token quotas (2e-4 of a batch) are made for
millions of tokens; on a task with a few thousand per update they choose nothing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from rlvr_jax.training.config import TrainConfig

__all__ = ["preset"]

_TASKS: dict[str, dict[str, Any]] = {
    "brackets": dict(
        steps=300,
        prompts_per_step=64,
        samples_per_prompt=8,
        minibatches=4,
        learning_rate=3e-4,
        warmup_updates=0,
        adam_b2=0.98,
    ),
}
_TASKS["operators"] = _TASKS["brackets"]

_METHODS: dict[tuple[str, str], dict[str, Any]] = {
    ("brackets", "clip_cov"): dict(hyperparameters=("fraction=0.0075",)),
    ("brackets", "kl_cov"): dict(hyperparameters=("fraction=0.02",), epochs=2),
    ("brackets", "entropy_bonus"): dict(hyperparameters=("coefficient=0.05",)),
}


def preset(task: str, method: str) -> TrainConfig:
    """The settings with which a command line for this task and method starts."""
    settings = {**_TASKS.get(task, {}), **_METHODS.get((task, method), {})}
    return dataclasses.replace(TrainConfig(task=task, method=method), **settings)
