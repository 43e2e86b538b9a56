"""A run as one line of `results.jsonl`: its settings, its results, and its origin."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax.analysis.run_directory import Run, load_run, read_json_lines

DIGITS = 5
"""Of what is written down; the hash is of all of them."""
_TOKENS = ("sampled_tokens", "given_tokens", "scored_tokens", "trained_tokens")


def run_row(path: Path, board: str, entry: str, commit: str) -> dict[str, Any]:
    """The line of a finished run.

    Args:
      path: run directory.
      board, entry: board of the run, and name of its entry.
      commit: commit of the code that ran.
    Returns:
      `start` and `end`: held-out numbers of the first and the last evaluation, and the entropy
      (nats per token) of the first and the last step. `parts`: means over steps of the curves of
      the experience. Also the number of tokens, and the hash `metrics_sha256` of `metrics.jsonl`.
    """
    run = load_run(path)
    evaluated = [row for row in run.metrics if "held_out/n" in row]
    return {
        "board": board,
        "entry": entry,
        "method": run.method,
        "seed": run.seed,
        "steps": run.last_step,
        **{name: int(run.series(name)[1].sum()) for name in _TOKENS},
        "start": _held_out(evaluated[0]) | _edge(run, 0),
        "end": _held_out(evaluated[-1]) | _edge(run, -1),
        "parts": {
            name.removeprefix("experience/"): _rounded(np.mean(run.series(name)[1]))
            for name in run.names()
            if name.startswith("experience/") and len(run.series(name)[1])
        },
        "settings": _portable_settings(run.config["settings"]),
        "metrics_sha256": hashlib.sha256((path / "metrics.jsonl").read_bytes()).hexdigest(),
        "commit": commit,
        "processor": processor(run.config.get("device", "cpu")),
        "versions": dict(run.config["versions"]),
        "seconds": round(sum(row.get("wall_s", 0.0) for row in run.timings)),
    }


def failed_row(
    path: Path, board: str, entry: str, settings: Mapping[str, Any], why: str, commit: str
) -> dict[str, Any]:
    """The line of a run that failed.

    Args:
      path: run directory, if the run has one.
      board, entry: board of the run, and name of its entry.
      settings: settings of the run, with method and seed.
      why: message of the failure.
      commit: commit of the code that ran.
    """
    try:
        begun = json.loads((path / "config.json").read_text())
    except (OSError, ValueError):  # the run failed before it wrote the file
        begun = {}
    return {
        "board": board,
        "entry": entry,
        "method": settings["method"],
        "seed": settings["seed"],
        "failed": why,
        "settings": _portable_settings(settings),
        "commit": commit,
        "processor": processor(begun.get("device", "cpu")),
    }


def _portable_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without the path of a model on this machine."""
    model = settings.get("model")
    return {**settings, "model": Path(model).name} if model else dict(settings)


def curve_row(path: Path, board: str, entry: str) -> dict[str, Any]:
    """The curves of a run at its evaluations: pass@k, entropy of held-out and of trained tokens,
    and sampled tokens so far."""
    run = load_run(path)
    evaluated = [row for row in run.metrics if "held_out/n" in row]
    sampled = np.cumsum([row.get("sampled_tokens", 0) for row in run.metrics])
    names = [n for n in evaluated[0] if n.startswith("held_out/pass@")] + ["held_out/entropy"]
    curves = {name: [_rounded(row[name]) for row in evaluated] for name in names}
    # Step 0 has no sampled tokens, but its evaluation has an entropy.
    # A step without trained tokens has no entropy.
    entropy = [row.get("entropy", row["held_out/entropy"]) for row in evaluated]
    curves["entropy"] = [_rounded(value) for value in entropy]
    steps = [row["step"] for row in run.metrics]
    curves["sampled_tokens"] = [int(sampled[steps.index(row["step"])]) for row in evaluated]
    key = {"board": board, "entry": entry, "seed": run.seed}
    return key | {"step": [row["step"] for row in evaluated], **curves}


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Adds a line to a file, makes the file if needed, and flushes it for other readers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All lines of a file; none if the file does not exist."""
    rows = read_json_lines(path)
    if any("drawn_tokens" in row for row in rows):  # written by an earlier version
        wanted = f"read_rows: lines of {path} must have sampled_tokens, got drawn_tokens"
        raise ValueError(f"{wanted}; run the board again in another folder")
    keys: Sequence[tuple] = [(row["board"], row["entry"], row["seed"]) for row in rows]
    if twice := [key for key in dict.fromkeys(keys) if keys.count(key) > 1]:
        raise ValueError(f"read_rows: {path} must have one line per run, got several of {twice[0]}")
    return rows


def commit_of(folder: Path) -> str:
    """The commit of the code of a folder."""
    try:
        found = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"commit_of: {folder} must be a git checkout, got {error}") from error
    if changed:
        raise ValueError(
            f"commit_of: {folder} must be as it was committed, got changes:\n{changed}"
        )
    return found


def processor(device: str = "cpu") -> str:
    """Model of this machine's processor or accelerator; another one may round differently.

    Args:
      device: kind of the devices of the run, by JAX's name.
    """
    if device != "cpu":
        return device
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    parts = ("model name", "cpu family", "model", "stepping")
    return " / ".join(named.get(part, "?") for part in parts)


def _git(folder: Path, *command: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *command], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _held_out(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Held-out numbers of a row, without those that do not describe the policy."""
    names = [n for n in row if n.startswith("held_out/") and row[n] is not None]
    return {n.removeprefix("held_out/"): _rounded(row[n]) for n in names if n != "held_out/n"}


def _edge(run: Run, which: int) -> dict[str, float | None]:
    values = run.series("entropy")[1]
    return {"train_entropy": _rounded(values[which])} if len(values) else {}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)
