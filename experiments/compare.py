"""The same budget for several methods and seeds, and one page that lays them side by side.

    python -m experiments.compare --methods grpo dapo clip_cov --seeds 5

Runs go on side by side, one core each. Every run is a run directory of its own below `run_dir`;
finished ones are kept, so an interrupted comparison goes on with `--resume`, and methods or seeds
can be added later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from rlvr_jax import methods as registry
from rlvr_jax.analysis.comparison import compare_runs
from rlvr_jax.training import check_directory, guarded, preset, train_together


@dataclass(frozen=True)
class Config:
    """Which runs, and where they go."""

    methods: tuple[str, ...] = ("grpo", "clip_cov")
    """Names of methods; differences are taken to the first."""
    seeds: int = 5
    """Seeds first_seed, first_seed + 1, …"""
    first_seed: int = 0
    """The lowest seed."""
    task: str = "brackets"
    """Task of all runs; its presets apply."""
    model: str = ""
    """Policy folder; empty: the task's own base model."""
    steps: int = 0
    """Rollout batches of each run; 0: the preset's."""
    run_dir: Path = Path("runs/compare")
    """Holds <method>/seed_<n> and the page."""
    checkpoint_every: int = 0
    """Steps between checkpoints; 0: every five minutes and at the end."""
    resume: bool = False
    """Keep finished runs, continue interrupted ones."""
    jobs: int = 0
    """Runs at a time; 0: one per core (one in all where there is an accelerator)."""


def main(arguments: Sequence[str]) -> None:
    """Runs what is missing, then writes the page."""
    config = tyro.cli(Config, args=list(arguments), description=__doc__)
    if config.seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {config.seeds}")
    for method in config.methods:
        registry.method(method)
    check_directory(config.run_dir, config.resume)
    console = Console()
    runs: dict[str, list[Path]] = {method: [] for method in config.methods}
    settings = []
    for seed in range(config.first_seed, config.first_seed + config.seeds):
        for method in config.methods:
            directory = config.run_dir / method / f"seed_{seed}"
            runs[method].append(directory)
            start = preset(config.task, method)
            settings.append(
                dataclasses.replace(
                    start,
                    model=config.model,
                    run_dir=directory,
                    steps=config.steps or start.steps,
                    seed=seed,
                    checkpoint_every=config.checkpoint_every,
                )
            )
    train_together(settings, console, config.jobs)
    page = config.run_dir / "comparison"
    comparison = compare_runs(page, runs, baseline=config.methods[0])
    for sentence in comparison.sentences:
        console.print(sentence, highlight=False)
    console.print(f"page: {page / 'comparison.html'}", highlight=False)


if __name__ == "__main__":
    guarded(main)
