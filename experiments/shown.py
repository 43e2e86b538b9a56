"""Trains each method in its shown setting, with its mechanism and without it.

    python -m rlvr_jax shown
    python -m rlvr_jax shown --methods sws skill0 --seeds 3
    python -m rlvr_jax shown --page

A method's card has the setting (`Method.shown`). Methods of the leaderboard's board `objectives`
are left out, because they are compared there. The run without the mechanism ends at the first step
that reaches the sampled tokens of the run with it. The end of a run adds a line to `results.jsonl`,
so the command can be stopped and started again. A third seed is run where the two runs differ by
more than their seeds do. `--page` writes the page from the lines. The working tree must have no
uncommitted changes.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

from rlvr_jax import methods
from rlvr_jax.analysis.evidence.rows import append_row, commit_of, failed_row, read_rows, run_row
from rlvr_jax.analysis.run_directory import load_run
from rlvr_jax.boards import check_together, train_together
from rlvr_jax.experiments.boards.definitions import BOARDS
from rlvr_jax.experiments.boards.shown_page import pair_of, write_page
from rlvr_jax.runs import RunsFailed, TrainConfig, described, guarded, parse_config
from rlvr_jax.runs.config import flag
from rlvr_jax.types import Method

ROOT = Path(__file__).resolve().parent.parent
BOARD = "methods"
_LONGER = 4
"""Largest number of steps without the mechanism, as a multiple of those with it."""


@dataclass(frozen=True)
class Config:
    """Runs to start, and the folder of their results."""

    methods: tuple[str, ...] = ()
    """Names of methods; empty: all that have a shown setting and are not on the leaderboard."""
    seeds: int = 2
    """Number of seeds, from 0 on."""
    most_steps: int = 60
    """Largest number of steps of a run with the mechanism: shorter than most cards' settings, so
    that a run takes a minute or two."""
    more_seeds: int = 1
    """Further seeds where the runs with and without the mechanism differ."""
    out: Path = ROOT / "docs" / "results" / "methods"
    """Folder of results.jsonl and of the page."""
    run_dir: Path = Path("runs/shown")
    """Folder of <method>/<with or without>/seed_<n> for each run; not needed afterwards."""
    jobs: int = 0
    """Parallel runs; 0: one per core, or a single one on an accelerator."""
    page: bool = False
    """Write the page and run nothing."""


def main(arguments: Sequence[str]) -> None:
    """Runs the command line."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    for name in ("seeds", "most_steps"):
        if (value := getattr(config, name)) < 1:
            raise ValueError(f"{flag(name)} must be at least 1, got {value}")
    names = config.methods or compared()
    if alone := [name for name in names if not has_pair(methods.method(name))]:
        raise ValueError(
            "--methods must have a shown setting with a run without the mechanism, got"
            f" {', '.join(alone)}"
        )
    if config.page:
        write_page(config.out, read_rows(config.out / "results.jsonl"))
        return
    console = Console()
    for seed in range(config.seeds + config.more_seeds):
        rows = read_rows(config.out / "results.jsonl")
        own = (
            names
            if seed < config.seeds
            else [name for name in names if pair_of(rows, name).differs]
        )
        for acts in (True, False):
            _run_missing(config, own, seed, acts, console)


def compared() -> list[str]:
    """The methods that this board compares."""
    elsewhere = BOARDS["objectives"].entries
    return [
        name for name in methods.names() if name not in elsewhere and has_pair(methods.method(name))
    ]


def has_pair(method: Method) -> bool:
    """Whether the card has a setting with a run without the mechanism."""
    return method.shown is not None and method.shown.without is not None


def run_config(
    config: Config, name: str, seed: int, acts: bool, rows: Sequence[Mapping[str, Any]]
) -> TrainConfig | None:
    """Settings of one run; None for a run without the mechanism whose pair has not ended.

    Args:
      rows: lines of ended runs, for the tokens of the run with the mechanism.
    """
    shown = methods.method(name).shown
    read = parse_config(shown.command(name, acts=acts)[1:])
    folder = config.run_dir / name / ("with" if acts else "without") / f"seed_{seed}"
    steps = min(read.steps, config.most_steps)
    own = {"seed": seed, "run_dir": folder, "samples_stored": 1, "steps": steps}
    if not acts:
        pair = [row for row in rows if (row["entry"], row["seed"]) == (name, seed)]
        if not pair or "end" not in pair[0]:
            return None
        # Without a budget, as for a method that samples nothing, both runs have equal steps.
        own["sampled_tokens"] = pair[0]["sampled_tokens"]
        own["steps"] = steps * (_LONGER if own["sampled_tokens"] else 1)
    own["evaluate_every"] = own["steps"]
    return read.replace(**own)


def _run_missing(
    config: Config, names: Sequence[str], seed: int, acts: bool, console: Console
) -> None:
    results, commit = config.out / "results.jsonl", commit_of(ROOT)
    rows = read_rows(results)
    known = {(row["entry"], row["seed"]) for row in rows}
    entries = {}
    for name in names:
        entry = name if acts else f"{name}:without"
        made = run_config(config, name, seed, acts, rows)
        if made is not None and (entry, seed) not in known:
            entries[made.run_dir] = (entry, name, made)
    configs = [made for _, _, made in entries.values()]
    console.print(
        f"seed {seed}, {'with' if acts else 'without'}: {len(configs)} of {len(names)} runs are"
        f" missing; commit {commit[:7]}",
        highlight=False,
    )

    def note(run: TrainConfig, result: dict[str, Any] | BaseException) -> None:
        entry, name, _ = entries[run.run_dir]
        if isinstance(result, BaseException):
            row = failed_row(run.run_dir, BOARD, entry, run.to_json(), str(result), commit)
        else:
            row = run_row(run.run_dir, BOARD, entry, commit)
            counts = load_run(run.run_dir).series(methods.method(name).shown.acts)[1]
            row["counter"] = float(np.sum(counts)) / max(row["steps"], 1)
        append_row(results, row)
        if "end" in row:
            shutil.rmtree(run.run_dir / "checkpoints", ignore_errors=True)

    check_together(configs)
    try:
        train_together(configs, console, config.jobs, ended=note)
    except RunsFailed as failed:
        # Their lines report it, too.
        console.print(str(failed), highlight=False, markup=False)


if __name__ == "__main__":
    guarded(main, join=False)
