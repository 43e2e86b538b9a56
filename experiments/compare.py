"""Compares methods at one budget over several seeds, on one page.

    python -m rlvr_jax compare --methods grpo dapo clip_cov --seeds 5
    python -m rlvr_jax compare --methods grpo grpo:learning_rate=1e-4,clip_high=0.28

Runs go on in parallel, one core each, on one host. Every run has a run directory below `run_dir`.
Finished runs are not repeated: an interrupted comparison goes on with `--resume`, and methods or
seeds can be added later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from rlvr_jax.analysis.comparison import compare_runs
from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.boards import check_together, entry_config, train_together
from rlvr_jax.runs import RunsFailed, TrainConfig, check_directory, described, guarded


@dataclass(frozen=True)
class Config:
    """Runs and their folder."""

    methods: tuple[str, ...] = ("grpo", "clip_cov")
    """Names of methods (or module:function), each optionally with settings
    (name:setting=value,…): hyperparameters or options of rlvr_jax train. A name that is
    both is a hyperparameter. Differences are taken to the first method."""
    seeds: int = 5
    """Number of seeds, from first_seed on."""
    first_seed: int = 0
    """Lowest seed."""
    task: str = "brackets"
    """Task of all runs; its presets apply."""
    task_options: tuple[str, ...] = ()
    """Options of the task, as in rlvr_jax train."""
    columns: tuple[str, ...] = ()
    """Columns of the task's files, as in rlvr_jax train."""
    model: str = ""
    """Policy folder; empty: the task's base model."""
    steps: int = 0
    """Rollout batches of each run; 0: the preset's."""
    sampled_tokens: int = 0
    """Token budget of each run: it ends, evaluated, at the first step that reaches the budget.
    Methods with more tokens per step take fewer steps. 0: equal steps."""
    run_dir: Path = Path("runs/compare")
    """Folder of <method>/seed_<n>, with - in place of colons, and of the page."""
    checkpoint_every: int = 0
    """Steps between checkpoints; 0: every five minutes and at the end."""
    resume: bool = False
    """Skip finished runs and continue interrupted ones."""
    jobs: int = 0
    """Parallel runs; 0: one per core, or a single one on an accelerator."""
    mesh: str = ""
    """Devices of each run, as in rlvr_jax train; empty: one. A run on a CPU has one device
    unless XLA_FLAGS sets more."""


def main(arguments: Sequence[str]) -> None:
    """Runs the missing runs, then writes the page."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    if config.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {config.seeds}")
    if not config.methods or len(set(config.methods)) < len(config.methods):
        named = " ".join(config.methods) or "none"
        raise ValueError(f"--methods must be named once each, got {named}")
    # All are read before any is begun.
    seeds = range(config.first_seed, config.first_seed + config.seeds)
    settings = {
        entry: [_settings(config, entry, seed) for seed in seeds] for entry in config.methods
    }
    check_directory(config.run_dir, config.resume)
    console = Console()
    # Seed after seed, so that an interrupted comparison has all methods.
    in_order = [each for of_seed in zip(*settings.values(), strict=True) for each in of_seed]
    check_together(in_order)
    failed = None
    try:
        train_together(in_order, console, config.jobs)
    except RunsFailed as error:
        # The page tells of all others, and how far these came.
        failed = error
    page = config.run_dir / "comparison"
    # A run that failed before its first evaluation has no results.
    unfinished = {path for path in (failed.failures if failed else ()) if not _is_evaluated(path)}
    runs = {
        entry: [each.run_dir for each in own if each.run_dir not in unfinished]
        for entry, own in settings.items()
    }
    runs = {entry: directories for entry, directories in runs.items() if directories}
    if failed and config.methods[0] not in runs:
        raise failed
    comparison = compare_runs(page, runs, baseline=config.methods[0])
    for sentence in comparison.sentences:
        console.print(sentence, highlight=False)
    console.print(f"page: {page / 'comparison.html'}", highlight=False)
    if failed:
        raise failed


def _is_evaluated(path: Path) -> bool:
    return (path / "config.json").is_file() and bool(load_run(path).held_out)


def _settings(config: Config, entry: str, seed: int) -> TrainConfig:
    shared = {
        "task": config.task,
        "model": config.model,
        # Some systems have no colon in names of folders.
        "run_dir": config.run_dir / entry.replace(":", "-") / f"seed_{seed}",
        "seed": seed,
        "checkpoint_every": config.checkpoint_every,
        "mesh": config.mesh,
    }
    if config.steps:
        shared["steps"] = config.steps
    if config.sampled_tokens:
        shared["sampled_tokens"] = config.sampled_tokens
    lists = {"task_options": config.task_options, "columns": config.columns}
    return entry_config(entry, shared, lists)


if __name__ == "__main__":
    guarded(main, join=False)
