"""Leaderboard: many methods with the same budget and several seeds.

    python -m rlvr_jax leaderboard --board objectives
    python -m rlvr_jax leaderboard --board objectives --entries my_method:my_loss --seeds 3
    python -m rlvr_jax leaderboard --page
    python -m rlvr_jax leaderboard --check

Runs the missing runs of a board (`rlvr_jax.boards`), seed by seed, each on one core. The end of a
run adds a line to `results.jsonl` and to `curves.jsonl`, so the command can be stopped and started
again. A line has the commit, the processor and the version of JAX; a run is compared only with a
baseline run of the same three. The working tree must have no uncommitted changes.

`--page` writes the pages from the lines. `--check` repeats one random line with the code of its
commit and compares. On the same processor and version of JAX all numbers of all steps must agree.
Elsewhere the result must be in the interval that one more run of the method is expected in.
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

_README = """# Leaderboard: methods at equal budgets

Question: which methods are better than GRPO on the same task, with the same budget of tokens or
steps? The table has the answer per board. A method is listed as above the baseline if two
conditions hold: the difference survives Holm's correction, and it has at least ten pairs of seeds.

    python -m rlvr_jax leaderboard --board objectives   # runs the missing runs of a board
    python -m rlvr_jax leaderboard --page               # writes these pages
    python -m rlvr_jax leaderboard --check              # repeats one run and compares

| board | entries | runs | task | above the baseline |
|---|---|---|---|---|
"""
_HOW_TO_READ = """
## How to read a table

- A number is a mean over seeds ± half-width of a 95 % t-interval. Intervals are not corrected.
- pass@k: of held-out prompts, at the end of a run.
- pass@k − baseline: difference paired by seed with the baseline at the same commit, processor and
  version of JAX.
- p: paired t-test with Holm's correction over all rows with at least two pairs.
- rank: by pass@k; the range that covers 95 % of 10,000 resamples of the seeds. With few seeds the
  range is too narrow.
- entropy: of the held-out responses at the last evaluation, in nats per token.
- rare form: fraction of the responses to hard prompts, at the end, that use the form which these
  prompts need. The second number counts the runs in which the fraction rose.
- effect: changes from the start to the end of training whose 95 % interval excludes 0. A dash:
  fewer than two seeds, or equal changes in all seeds.

| effect | pass@1 | pass@k |
|---|---|---|
| boundary out | rose | rose |
| sharpened | rose | no significant change |
| sharpened at a price | rose | fell |
| wider | no significant change | rose |
| undecided | no significant change | no significant change |
| narrower | no significant change | fell |
| wider, duller | fell | rose |
| duller | fell | no significant change |
| unlearned | fell | fell |

## Files, and other methods

- `results.jsonl`: a line per run with settings, results, hash of the metrics, commit, processor.
- `curves.jsonl`: the metrics at the evaluations of each run.
- To compare another method with GRPO, run
  `--board objectives --entries grpo my_module:my_method --out my_board`, then
  `--page --out my_board`.

## Limits

- The boards of `brackets` and `hinted_brackets` train a policy of 108 thousand parameters on a
  synthetic task. They do not show the effect of a method on a language model.
- Settings are those of the papers. The cards of the methods list the exceptions with reasons.
  Only the boards `tuning` and `tuned` compare several values of a setting.
"""


@dataclass(frozen=True)
class Config:
    """Runs to start, and the folder of their results."""

    board: str = "objectives"
    """Name of a board."""
    entries: tuple[str, ...] = ()
    """Entries of the board, or further ones in the form of `python -m rlvr_jax compare` (default:
    all entries of the board)."""
    seeds: int = 0
    """Number of seeds, from first_seed on; 0: the board's number."""
    first_seed: int | None = None
    """Lowest seed; None: the board's."""
    out: Path = ROOT / "docs" / "results" / "leaderboard"
    """Folder of results.jsonl and curves.jsonl."""
    run_dir: Path = Path("runs/leaderboard")
    """Folder of <board>/<entry>/seed_<n> for each run; not needed afterwards."""
    jobs: int = 0
    """Parallel runs; 0: one per core, or a single one on an accelerator."""
    page: bool = False
    """Write the pages and run nothing."""
    check: bool = False
    """Repeat one line of results.jsonl and compare."""


def main(arguments: Sequence[str]) -> None:
    """Runs the command line."""
    config = tyro.cli(Config, args=list(arguments), description=described(__doc__))
    if config.board not in BOARDS:
        raise ValueError(f"--board must be one of {', '.join(BOARDS)}, got {config.board!r}")
    console = Console()
    if config.page:
        write_pages(config.out)
    elif config.check:
        console.print(check_one(config, random.SystemRandom()), highlight=False, markup=False)
    else:
        run_missing(config, console)


def run_missing(config: Config, console: Console) -> None:
    """Runs the missing runs of a board, and writes a line at the end of each run."""
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
            # Gigabytes per run of a language model, and a run with a line is not run again.
            shutil.rmtree(run.run_dir / "checkpoints", ignore_errors=True)

    try:
        train_together(configs, console, config.jobs, ended=note)
    except RunsFailed as failed:
        # Their lines report it, too.
        console.print(str(failed), highlight=False, markup=False)


def write_pages(out: Path) -> None:
    """Writes a page for each board that has lines, and README.md, which lists the boards."""
    rows, curves = (read_rows(out / f"{name}.jsonl") for name in ("results", "curves"))
    links = []
    for name, board in BOARDS.items():
        own = [row for row in rows if row["board"] == name]
        if not own:
            continue
        most = f"{_tokens_text(board.sampled_tokens)} sampled tokens"
        most = most if board.sampled_tokens else f"{board.steps} steps"
        model = "SmolLM2-135M-Instruct" if board.model == "smollm2" else "its base model"
        budget = f"{board.question}\n\nTask `{board.task}` with its presets and {model}. Budget of"
        budget += f" each run: {most}. Command: `python -m rlvr_jax leaderboard --board {name}`."
        baseline = next(iter(board.entries))
        ended = [row for row in own if "end" in row]
        if all(row["entry"] != baseline for row in ended):
            raise ValueError(
                f"page: board {name} in {out} must have a run of its baseline {baseline}; run it"
                f" with --board {name} --entries {baseline} --out {out}"
            )
        page = out / f"{name}.md"
        notes = _notes(board, ended)
        behind = []
        if board.every_run:
            behind = every_run_table([row for row in curves if row["board"] == name], board.main)
        above = write_board(
            page, board.title, budget, own, baseline, notes=notes, main=board.main, behind=behind
        )
        counts = f"{len({row['entry'] for row in ended})} | {len(ended)}"
        links.append(f"| [{board.title}]({name}.md) | {counts} | `{board.task}` | {above} |")
    readme = out / "README.md"
    readme.write_text(_README + "\n".join(links) + "\n" + _HOW_TO_READ)


def _tokens_text(tokens: float) -> str:
    """A number of tokens in words: 1.34 million, 48,000."""
    return f"{tokens / 1e6:.3g} million" if tokens >= 1e6 else f"{tokens:,.0f}"


def _notes(board: Board, ended: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Notes of the board, on entries whose runs ended below the budget, and on the best entry of
    each method on a board for choosing."""
    notes = dict(board.notes)

    def add(entry: str, note: str) -> None:
        notes[entry] = "; ".join(filter(None, [notes.get(entry), note]))

    for entry in dict.fromkeys(row["entry"] for row in ended):
        sampled = [row["sampled_tokens"] for row in ended if row["entry"] == entry]
        if min(sampled) < board.sampled_tokens:
            short = sum(each < board.sampled_tokens for each in sampled)
            note = f"{short} of {len(sampled)} runs reached their last step before the token budget"
            note += f" (mean: {_tokens_text(np.mean(sampled))} sampled tokens)"
            add(entry, note)
    if board.chooses:
        for method, entry in chosen_entries(ended, board.main).items():
            tried = len({row["entry"] for row in ended if row["method"] == method})
            if tried > 1:
                add(entry, f"best of {tried} values of `{method}` by mean {board.main}")
    return notes


def check_one(config: Config, chance: random.Random) -> str:
    """Repeats one line with the code of its commit; returns the comparison and its result.

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
    """Agreement of a repeated run with its line.

    Args:
      rows: all lines; those of the same board and entry give the spread of single runs.
    Raises:
      ValueError: the run does not agree with its line.
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
            f"check: {row['entry']} must have two runs on {row['processor']} to predict one more"
            f" with {other}, got {len(values)}"
        )
    low, high = prediction_interval(values)
    got = again["end"][main] if "end" in again else float("nan")
    if not low <= got <= high:
        raise ValueError(
            f"check: with {other} {main} must be in [{low:.3f}, {high:.3f}], got {got:.3f}"
        )
    return f"{other}; {main} {got:.3f} in [{low:.3f}, {high:.3f}]"


def _differs(row: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    """Differences of processor and version that may change the rounding of a repeated run."""
    found = ["another processor"] if again["processor"] != row["processor"] else []
    was = row["versions"]["jax"]
    now = again.get("versions", row["versions"])["jax"]  # a run that failed has none
    if now != was:
        found.append(f"jax {now} in place of {was}")
    return " and ".join(found)


def run_config(config: Config, board: Board, entry: str, seed: int) -> TrainConfig:
    """Settings of one run of a board."""
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
