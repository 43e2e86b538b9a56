"""Held-out pass rates of a policy folder.

python -m experiments.evaluate --model runs/dapo/policy --task brackets
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import tyro

from rlvr_jax.analysis.prompt_bootstrap import bootstrap_mean, estimates
from rlvr_jax.experience.evaluation import (
    evaluate,
    evaluation_sampler,
    held_out_indices,
    ks_for,
)
from rlvr_jax.runs import check_config, guarded, preset
from rlvr_jax.runs.loading import load_policy
from rlvr_jax.runs.task import load_task
from rlvr_jax.training.layout import make_reshard


@dataclass(frozen=True)
class Config:
    """What is evaluated, and how often it is asked."""

    model: Path
    """Policy folder in Hugging Face's layout."""
    task: str = "brackets"
    """As in experiments.train."""
    task_options: tuple[str, ...] = ()
    """Of the task, as in experiments.train."""
    columns: tuple[str, ...] = ()
    """Of its files, as in experiments.train."""
    prompts: int = 256
    """Held-out prompts; the same ones for every seed."""
    samples: int = 64
    """Rollouts per prompt; pass@k is estimated for k up to half of them."""
    temperature: float = 1.0
    """Of the sampler."""
    response_tokens: int = 0
    """Budget of a response; 0: that of experiments.train for the task."""
    unsafe_local: bool = False
    """As in experiments.train."""
    seed: int = 0
    """Of the rollouts."""
    mesh: str = ""
    """Devices, as in experiments.train; empty: one, and on a CPU one per core for many rollouts."""


def main(arguments: Sequence[str]) -> None:
    """Prints one number a line, and of pass@k an interval over the choice of prompts."""
    config = tyro.cli(Config, args=list(arguments), description=__doc__)
    start = preset(config.task, "grpo")
    settings = dataclasses.replace(
        start,
        model=str(config.model),
        task_options=config.task_options,
        columns=config.columns,
        unsafe_local=config.unsafe_local,
        seed=config.seed,
        temperature=config.temperature,
        response_tokens=config.response_tokens or start.response_tokens,
        evaluation_prompts=config.prompts,
        evaluation_samples=config.samples,
        mesh=config.mesh,
        # Nothing is updated: the mesh splits the rollouts of a step.
        minibatches=1,
        micro_batches=0,
    )
    check_config(settings)
    task = load_task(settings)
    loaded = load_policy(settings, task, settings.model)
    indices = held_out_indices(task, config.prompts)
    sampler = evaluation_sampler(
        loaded.sampler, len(indices), config.samples, mesh_given=bool(config.mesh)
    )
    result = evaluate(
        sampler,
        make_reshard(loaded.model, sampler.model)(loaded.params),
        loaded.test_table,
        indices,
        config.samples,
        jax.random.key(config.seed),
    )
    print(
        f"{len(indices)} prompts x {result.n} samples of at most {sampler.response_tokens} tokens,"
        f" temperature {config.temperature:g}"
    )
    for name, value in result.metrics.items():
        print(f"{name:<40} {value:.4f}" if isinstance(value, float) else f"{name:<40} {value}")
    for k in ks_for(result.n):
        interval = bootstrap_mean(estimates([result.counts()], k), result.weights)
        print(f"{f'held_out/pass@{k} over prompts':<40} {interval}")


if __name__ == "__main__":
    guarded(main)
