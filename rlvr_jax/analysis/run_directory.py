"""Reads run directories, finished or still being written, as docs/run_directory.md describes them.

All files but the config may be missing, and the last line of a growing file may be torn: it is then
left out. A line that was finished and cannot be read is an error. After a resume a step may be in a
file twice; the later values count.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Run:
    """One run directory, read once.

    Fields:
      path: the directory.
      config: `config.json` as it is.
      metrics: the objects of `metrics.jsonl`, one per step, by rising step.
      timings: the same of `timings.jsonl`.
      held_out: those of `held_out.jsonl`, one per evaluation: correct samples prompt by prompt.
      summary: `summary.json`, empty while the run goes on.
    """

    path: Path
    config: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]] = ()
    timings: Sequence[Mapping[str, Any]] = ()
    held_out: Sequence[Mapping[str, Any]] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)

    def setting(self, name: str, default: Any = None) -> Any:
        """An entry of the config, or a setting: its resolved value, else the one that was given."""
        places = (self.config, *(self.config.get(part, {}) for part in ("resolved", "settings")))
        return next((place[name] for place in places if name in place), default)

    @property
    def method(self) -> str:
        """Name of the method; the directory's name if the config has none."""
        return str(self.setting("method", self.path.name))

    @property
    def seed(self) -> int | None:
        """The seed, None if the config has none."""
        return self.setting("seed")

    @property
    def last_step(self) -> int:
        """The last one that was written; 0 before the first."""
        return max((row["step"] for row in self.metrics), default=0)

    @property
    def has_ended(self) -> bool:
        """Whether it has taken its last step, or has generated all tokens of its budget."""
        budget, sampled = self.setting("sampled_tokens"), self.series("sampled_tokens")[1]
        spent = bool(budget) and len(sampled) > 0 and sampled.sum() >= budget
        return spent or self.last_step == self.setting("steps")

    def names(self) -> list[str]:
        """Every metric that occurs, in the order of its first appearance."""
        return list(dict.fromkeys(n for row in self.metrics for n in row if n != "step"))

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one metric, as int and float arrays; empty if it was never written.

        A value that is missing, null or not finite is left out with its step.
        """
        pairs = [(r["step"], r[name]) for r in self.metrics if _is_number(r.get(name))]
        steps, values = zip(*pairs, strict=True) if pairs else ((), ())
        return np.asarray(steps, int), np.asarray(values, float)

    def common(self, *names: str) -> tuple[np.ndarray, ...]:
        """Steps at which all of some metrics have a value, and the values of each, rising."""
        columns = [dict(zip(*self.series(name), strict=True)) for name in names]
        steps = sorted(set.intersection(*map(set, columns)))
        return np.asarray(steps, int), *(np.array([c[s] for s in steps]) for c in columns)

    def sample_steps(self) -> list[int]:
        """Steps with stored responses, rising."""
        return sorted(self._sample_files())

    def samples(self, step: int) -> list[dict[str, Any]]:
        """The stored responses of one step; see `sample_steps`."""
        found = self._sample_files()
        if step not in found:
            raise ValueError(f"Run.samples: step must be one of {sorted(found)}, got {step}")
        return read_json_lines(found[step])

    def _sample_files(self) -> dict[int, Path]:
        """The files of responses by step; others in the folder are not looked at."""
        files = (self.path / "samples").glob("step_*.jsonl")
        matches = ((re.fullmatch(r"step_(\d+)", file.stem), file) for file in files)
        return {int(match[1]): file for match, file in matches if match}


def load_run(path: str | Path) -> Run:
    """Reads a run directory, also one that is still being written.

    Examples:
      >>> from rlvr_jax.analysis.run_directory import load_run
      >>> steps, entropy = load_run("runs/quickstart/grpo").series("entropy")  # doctest: +SKIP

    Raises:
      ValueError: no such directory; no config.json in it; a complete line that is not JSON; or a
        run of an earlier version with other names of metrics.
    """
    path = Path(path)
    if not (path / "config.json").is_file():
        raise ValueError(f"load_run: path must be a directory with a config.json, got {path}")
    metrics = read_steps(path / "metrics.jsonl")
    if any(name.endswith("truncated_share") for row in metrics for name in row):
        raise ValueError(
            f"load_run: metrics in {path} must have names of this version (truncated_fraction), got"
            " truncated_share: read or resume the run with the version that wrote it"
        )
    return Run(
        path=path,
        config=_read_json(path / "config.json"),
        metrics=metrics,
        timings=read_steps(path / "timings.jsonl"),
        held_out=read_steps(path / "held_out.jsonl"),
        summary=_read_summary(path / "summary.json"),
    )


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Reads one JSON object per line, none where there is no file; a last line without its line
    break may be torn.
    """
    *finished, last = path.read_bytes().split(b"\n") if path.is_file() else [b""]
    rows = []
    for number, line in enumerate([*finished, last], start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            if number > len(finished):
                break
            raise ValueError(
                f"read_json_lines: {path}, line {number} must be JSON, got {line[:80]!r}"
            ) from error
        if not isinstance(row, dict):
            raise ValueError(
                f"read_json_lines: {path}, line {number} must be an object, got {line[:80]!r}"
            )
        rows.append(row)
    return rows


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested settings: {"a": {"b": 1}} -> {"a.b": 1}."""
    flat = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"load_run: {path} must be JSON, got {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"load_run: {path} must hold an object, got {type(content).__name__}")
    return content


def _read_summary(path: Path) -> dict[str, Any]:
    """The summary; a torn one is being written, and the run is not finished yet."""
    try:
        return json.loads(path.read_bytes()) if path.is_file() else {}
    except ValueError:
        return {}


def read_steps(path: Path) -> list[dict[str, Any]]:
    """The objects of a file that has one per step, by rising step; none if there is no file."""
    rows = {}
    for row in read_json_lines(path):
        if not isinstance(row.get("step"), int):
            raise ValueError(f"load_run: {path}: step must be an int, got {row.get('step')!r}")
        rows[row["step"]] = rows.get(row["step"], {}) | row
    return [rows[step] for step in sorted(rows)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and bool(np.isfinite(value))
