"""The same budget for several methods and seeds, and one page that lays them side by side.

    python -m experiments.compare --methods grpo dapo clip_cov --seeds 5
    python -m experiments.compare --methods grpo grpo:learning_rate=1e-4,clip_high=0.28

Runs go on side by side, one core each, all on one host. Every run is a run directory of its own
below `run_dir`; finished ones are kept, so an interrupted comparison goes on with `--resume`, and
methods or seeds can be added later.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from rlvr_jax import methods
from rlvr_jax.analysis.comparison import compare_runs
from rlvr_jax.runs import TrainConfig, check_directory, guarded, parse_config, train_together


@dataclass(frozen=True)
class Config:
    """Which runs, and where they go."""

    methods: tuple[str, ...] = ("grpo", "clip_cov")
    """Names of methods (or module:function), each with settings of its own or none
    (name:setting=value,…), which are hyperparameters or options of experiments.train; what could be
    either is a hyperparameter. Differences are taken to the first."""
    seeds: int = 5
    """Seeds first_seed, first_seed + 1, …"""
    first_seed: int = 0
    """The lowest seed."""
    task: str = "brackets"
    """Task of all runs; its presets apply."""
    task_options: tuple[str, ...] = ()
    """Of the task, as in experiments.train."""
    columns: tuple[str, ...] = ()
    """Of its files, as in experiments.train."""
    model: str = ""
    """Policy folder; empty: the task's own base model."""
    steps: int = 0
    """Rollout batches of each run; 0: the preset's."""
    drawn_tokens: int = 0
    """Tokens that each run may draw: it ends, evaluated, at the first step that reaches them, so
    that methods which draw more a step take fewer steps; 0: equal steps."""
    run_dir: Path = Path("runs/compare")
    """Holds <method>/seed_<n> and the page."""
    checkpoint_every: int = 0
    """Steps between checkpoints; 0: every five minutes and at the end."""
    resume: bool = False
    """Keep finished runs, continue interrupted ones."""
    jobs: int = 0
    """Runs at a time; 0: one per core (one in all where there is an accelerator)."""
    mesh: str = ""
    """Devices of each run, as in experiments.train; empty: one. A run on a CPU has one device,
    unless XLA_FLAGS says otherwise."""


def main(arguments: Sequence[str]) -> None:
    """Runs what is missing, then writes the page."""
    config = tyro.cli(Config, args=list(arguments), description=__doc__)
    if config.seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {config.seeds}")
    if len(set(config.methods)) < len(config.methods):
        raise ValueError(f"methods must be named once each, got {' '.join(config.methods)}")
    # All are read before any is begun.
    seeds = range(config.first_seed, config.first_seed + config.seeds)
    settings = {
        entry: [_settings(config, entry, seed) for seed in seeds] for entry in config.methods
    }
    check_directory(config.run_dir, config.resume)
    console = Console()
    # Seed after seed, so that an interrupted comparison has all methods.
    in_order = [each for of_seed in zip(*settings.values(), strict=True) for each in of_seed]
    diverged = None
    try:
        train_together(in_order, console, config.jobs)
    except FloatingPointError as error:
        # The page tells of all others, and how far these came.
        diverged = error
    page = config.run_dir / "comparison"
    runs = {entry: [each.run_dir for each in own] for entry, own in settings.items()}
    comparison = compare_runs(page, runs, baseline=config.methods[0])
    for sentence in comparison.sentences:
        console.print(sentence, highlight=False)
    console.print(f"page: {page / 'comparison.html'}", highlight=False)
    if diverged:
        raise diverged


def _settings(config: Config, entry: str, seed: int) -> TrainConfig:
    """Settings of one run: the presets, then what all runs share, then those of its entry.

    Raises:
      ValueError: an unknown method or setting, or a value that cannot be read.
    """
    method, _, given = entry.partition(":")
    function, _, others = given.partition(":")
    if function and "=" not in function:  # module:function
        method, given = f"{method}:{function}", others
    own = inspect.signature(methods.method(method).recipe).parameters
    options = {
        "task": config.task,
        "method": method,
        "model": config.model,
        "run_dir": config.run_dir / entry / f"seed_{seed}",
        "seed": seed,
        "checkpoint_every": config.checkpoint_every,
        "mesh": config.mesh,
    }
    if config.steps:
        options["steps"] = config.steps
    if config.drawn_tokens:
        options["drawn_tokens"] = config.drawn_tokens
    hyperparameters = []
    # A value may have commas of its own: what has no name belongs to what stands before it.
    for pair in filter(None, re.split(r",(?=[^,=]*=)", given)):
        name, equals, value = pair.partition("=")
        if name in own:
            hyperparameters.append(pair)
        elif not equals or name in (*options, "task_options", "columns"):
            raise ValueError(
                "methods must be name:setting=value,… of settings that this command does not set"
                f" itself, got {entry!r}"
            )
        elif name in TrainConfig.__dataclass_fields__:
            options[name] = value
        else:
            hyperparameters.append(pair)
    line = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    lists = {
        "--hyperparameters": hyperparameters,
        "--task-options": config.task_options,
        "--columns": config.columns,
    }
    for name, values in lists.items():
        line += [name, *values] if values else []
    return parse_config(line)


if __name__ == "__main__":
    guarded(main, join=False)
