"""Many methods, the same budget, several seeds: which keep a policy exploring?

    python -m experiments.leaderboard --board objectives
    python -m experiments.leaderboard --board objectives --entries my_method:my_loss --seeds 3
    python -m experiments.leaderboard --page
    python -m experiments.leaderboard --check

Runs what a board (`rlvr_jax.boards`) still lacks, seed after seed, each run on one core, and
adds a line to `results.jsonl` and one to `curves.jsonl` as each ends; so it may be stopped at any
time and goes on where it was. Lines tell the commit, the processor and JAX's version: runs in which
one of them is another are compared with the baseline of their own alone. The code must be as it was
committed.

`--page` writes the pages from the lines. `--check` takes one line by chance, runs it again with the
code of its commit, and compares: on the same processor and version of JAX every number of every
step, elsewhere what it came to with the interval in which one more run of this method is expected.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

from rlvr_jax.analysis.evidence.ranking import chosen_entries, prediction_interval
from rlvr_jax.analysis.evidence.rows import (
    append_row,
    commit_of,
    curve_row,
    failed_row,
    read_rows,
    run_row,
)
from rlvr_jax.boards import check_together, entry_config, train_together
from rlvr_jax.experiments.boards.board_page import write_board
from rlvr_jax.experiments.boards.definitions import BOARDS, Board
from rlvr_jax.experiments.boards.every_run import every_run_table
from rlvr_jax.policy import shipped_weights
from rlvr_jax.runs import RunsFailed, TrainConfig, described, guarded

ROOT = Path(__file__).resolve().parent.parent

_README = """# Leaderboard: which methods keep a policy exploring

    python -m experiments.leaderboard --board objectives   # runs what is missing, with your cores
    python -m experiments.leaderboard --page               # writes these pages
    python -m experiments.leaderboard --check              # runs one line again and compares

`results.jsonl` has a line a run: settings, what it came to, the hash of its metrics, the commit,
the processor. `curves.jsonl` has the curves at the evaluations. A method of your own is set beside
GRPO on your machine with `--board objectives --entries grpo my_module:my_method --out my_board`;
`--page --out my_board` writes its page. Boards of `brackets` are about a policy of 108 thousand
parameters, and nothing of them is about language models. Settings are those of the papers but where
`rlvr_jax/runs/presets.py` says why they are not.

| board | entries | runs | task |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Config:
    """Which runs, and where their lines go."""

    board: str = "objectives"
    """Name of a board."""
    entries: tuple[str, ...] = ()
    """Names of the board's, or others as in experiments.compare, which join it; empty: all of the
    board's."""
    seeds: int = 0
    """Seeds first_seed, first_seed + 1, …; 0: as many as the board has."""
    first_seed: int | None = None
    """The lowest seed; None: the board's."""
    out: Path = ROOT / "docs" / "results" / "leaderboard"
    """Folder of results.jsonl and curves.jsonl."""
    run_dir: Path = Path("runs/leaderboard")
    """Holds <board>/<entry>/seed_<n> for each run; what it holds is not needed afterwards."""
    jobs: int = 0
    """Runs at a time; 0: one per core (one in all where there is an accelerator)."""
    page: bool = False
    """Write the pages and run nothing."""
    check: bool = False
    """Run one line of results.jsonl again and compare."""


def main(arguments: Sequence[str]) -> None:
    """Runs what is missing."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    if config.board not in BOARDS:
        raise ValueError(f"board must be one of {', '.join(BOARDS)}, got {config.board!r}")
    console = Console()
    if config.page:
        write_pages(config.out)
    elif config.check:
        console.print(check_one(config, random.SystemRandom()), highlight=False, markup=False)
    else:
        run_missing(config, console)


def run_missing(config: Config, console: Console) -> None:
    """Runs what a board lacks, and writes a line for each run as it ends."""
    board = BOARDS[config.board]
    commit = commit_of(ROOT)
    results = config.out / "results.jsonl"
    known = {(row["board"], row["entry"], row["seed"]) for row in read_rows(results)}
    first = board.first_seed if config.first_seed is None else config.first_seed
    seeds = range(first, first + (config.seeds or board.seeds))
    asked = [(entry, seed) for seed in seeds for entry in config.entries or board.entries]
    missing = [key for key in asked if (config.board, *key) not in known]
    console.print(
        f"{config.board}: {len(missing)} of {len(asked)} runs are missing; commit {commit[:7]}",
        highlight=False,
    )
    configs = [run_config(config, board, *key) for key in missing]
    entries = {each.run_dir: entry for each, (entry, _) in zip(configs, missing, strict=True)}
    check_together(configs)

    def note(run: TrainConfig, result: dict[str, Any] | BaseException) -> None:
        entry = entries[run.run_dir]
        if isinstance(result, BaseException):
            settings, why = run.to_json(), str(result)
            row = failed_row(run.run_dir, config.board, entry, settings, why, commit)
        else:
            row = run_row(run.run_dir, config.board, entry, commit)
            append_row(config.out / "curves.jsonl", curve_row(run.run_dir, config.board, entry))
        append_row(results, row)
        if "end" in row:
            # Gigabytes a run of a language model, and what has a line is not run again.
            shutil.rmtree(run.run_dir / "checkpoints", ignore_errors=True)

    try:
        train_together(configs, console, config.jobs, ended=note)
    except RunsFailed as failed:
        # Their lines say so, too.
        console.print(str(failed), highlight=False, markup=False)


def write_pages(out: Path) -> None:
    """A page for each board that has lines, and README.md, which lists them."""
    rows, curves = (read_rows(out / f"{name}.jsonl") for name in ("results", "curves"))
    links = []
    for name, board in BOARDS.items():
        own = [row for row in rows if row["board"] == name]
        if not own:
            continue
        most = f"draw {_tokens_text(board.sampled_tokens)} tokens"
        most = most if board.sampled_tokens else f"take {board.steps} steps"
        model = ", SmolLM2-135M-Instruct" * (board.model == "smollm2")
        budget = f"Task `{board.task}`{model}, its presets; each run may {most}."
        baseline = next(iter(board.entries))
        ended = [row for row in own if "end" in row]
        if all(row["entry"] != baseline for row in ended):
            raise ValueError(
                f"page: board {name} in {out} must have a run of {baseline}, which all are compared"
                f" with; run it with --board {name} --entries {baseline} --out {out}"
            )
        page = out / f"{name}.md"
        notes = _notes(board, ended)
        behind = []
        if board.every_run:
            behind = every_run_table([row for row in curves if row["board"] == name], board.main)
        write_board(
            page, board.title, budget, own, baseline, notes=notes, main=board.main, behind=behind
        )
        entries = len({row["entry"] for row in ended})
        links.append(f"| [{board.title}]({name}.md) | {entries} | {len(ended)} | `{board.task}` |")
    readme = out / "README.md"
    readme.write_text(_README + "\n".join(links) + "\n")


def _tokens_text(tokens: float) -> str:
    """A number of tokens in words: 1.34 million, 48,000."""
    return f"{tokens / 1e6:.3g} million" if tokens >= 1e6 else f"{tokens:,.0f}"


def _notes(board: Board, ended: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The board's notes, which entries came to their last step before they had drawn all, and which
    are the best of their method where the board is for choosing."""
    notes = dict(board.notes)

    def add(entry: str, note: str) -> None:
        notes[entry] = "; ".join(filter(None, [notes.get(entry), note]))

    for entry in dict.fromkeys(row["entry"] for row in ended):
        sampled = [row["sampled_tokens"] for row in ended if row["entry"] == entry]
        if min(sampled) < board.sampled_tokens:
            short = sum(each < board.sampled_tokens for each in sampled)
            note = f"{short} of {len(sampled)} runs took all their steps before they had drawn the"
            note += f" budget: {_tokens_text(np.mean(sampled))} tokens in the mean"
            add(entry, note)
    if board.chooses:
        for method, entry in chosen_entries(ended, board.main).items():
            tried = len({row["entry"] for row in ended if row["method"] == method})
            if tried > 1:
                add(entry, f"the best of {tried} of `{method}` by the mean of {board.main}")
    return notes


def check_one(config: Config, chance: random.Random) -> str:
    """Runs one line again with the code of its commit; says what was compared, and how it came out.

    Raises:
      ValueError: there is no line, the commit is not in this checkout, or the numbers differ.
    """
    rows = read_rows(config.out / "results.jsonl")
    ended = [row for row in rows if "end" in row]
    if not ended:
        raise ValueError(f"check: {config.out} must have lines of ended runs, got none")
    row = chance.choice(ended)
    found = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "-e", f"{row['commit']}^{{commit}}"],
        capture_output=True,
    )
    if found.returncode:
        raise ValueError(f"check: commit {row['commit']} must be in {ROOT}, found no such commit")
    name = f"{row['entry']} seed {row['seed']} of board {row['board']} at {row['commit'][:7]}"
    with tempfile.TemporaryDirectory() as folder:
        code, out = Path(folder) / "code", Path(folder) / "out"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(code), row["commit"]], check=True)
        try:
            line = ["--board", row["board"], "--entries", row["entry"], "--seeds", "1"]
            line += ["--first-seed", str(row["seed"]), "--out", str(out)]
            subprocess.run(
                [sys.executable, "-m", "experiments.leaderboard", *line],
                cwd=code,
                env=os.environ | {"PYTHONPATH": str(code)},
                check=True,
            )
        finally:
            subprocess.run([*git, "remove", "--force", str(code)], check=True)
        again = read_rows(out / "results.jsonl")[0]
    return f"{name}: {agreement(row, again, ended)}"


def agreement(
    row: Mapping[str, Any], again: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> str:
    """How a run that was done again agrees with its line.

    Args:
      rows: all lines; those of the same board and entry tell how far single runs scatter.
    Raises:
      ValueError: it does not agree.
    """
    other = _differs(row, again)
    if not other:
        if again.get("metrics_sha256") != row["metrics_sha256"]:
            raise ValueError(
                f"check: metrics.jsonl must have the hash {row['metrics_sha256']}, got"
                f" {again.get('metrics_sha256', again.get('failed'))}"
            )
        return f"the same metrics.jsonl, {row['metrics_sha256'][:12]}"
    key = row["board"], row["entry"]
    main = BOARDS[row["board"]].main
    values = [
        each["end"][main]
        for each in rows
        if (each["board"], each["entry"]) == key and each["processor"] == row["processor"]
    ]
    if len(values) < 2:
        raise ValueError(
            f"check: {row['entry']} must have two runs on {row['processor']} to say what one more"
            f" comes to with {other}, got {len(values)}"
        )
    low, high = prediction_interval(values)
    got = again["end"][main] if "end" in again else float("nan")
    if not low <= got <= high:
        raise ValueError(
            f"check: with {other} {main} must be in [{low:.3f}, {high:.3f}], got {got:.3f}"
        )
    return f"{other}; {main} {got:.3f} in [{low:.3f}, {high:.3f}]"


def _differs(row: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    """What computed a run again that had not computed its line, and may round otherwise."""
    found = ["another processor"] if again["processor"] != row["processor"] else []
    was = row["versions"]["jax"]
    now = again.get("versions", row["versions"])["jax"]  # a run that failed has none
    if now != was:
        found.append(f"jax {now} in place of {was}")
    return " and ".join(found)


def run_config(config: Config, board: Board, entry: str, seed: int) -> TrainConfig:
    """The settings of one run of a board."""
    shared: dict[str, Any] = {
        "task": board.task,
        "evaluate_every": board.evaluate_every,
        "run_dir": config.run_dir / config.board / entry / f"seed_{seed}",
        "seed": seed,
    }
    if board.model:
        shared["model"] = str(shipped_weights())
    if board.sampled_tokens:
        shared["sampled_tokens"] = board.sampled_tokens
    if board.steps:
        shared["steps"] = board.steps
    read = entry_config(board.entries.get(entry, entry), shared)
    return read.replace(samples_stored=1)


if __name__ == "__main__":
    guarded(main, join=False)
