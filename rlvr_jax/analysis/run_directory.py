"""Reads run directories, finished or growing; docs/run_directory.md describes the files.

All files except the config may be missing. An incomplete last line of a growing file is left out. A
complete line that cannot be read is an error. After a resume a step may occur twice in a file; the
later values count.
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
    """The content of a run directory.

    Fields:
      path: the directory.
      config: content of `config.json`.
      metrics: objects of `metrics.jsonl`, one per step, in ascending order.
      timings: objects of `timings.jsonl`, one per step, in ascending order.
      held_out: objects of `held_out.jsonl`, one per evaluation, with the correct samples of each
        prompt.
      summary: content of `summary.json`; empty while the run continues.
    """

    path: Path
    config: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]] = ()
    timings: Sequence[Mapping[str, Any]] = ()
    held_out: Sequence[Mapping[str, Any]] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)

    def setting(self, name: str, default: Any = None) -> Any:
        """An entry of the config, or a setting: its resolved value, else its given value."""
        places = (self.config, *(self.config.get(part, {}) for part in ("resolved", "settings")))
        return next((place[name] for place in places if name in place), default)

    @property
    def method(self) -> str:
        """Name of the method; the directory's name if the config has none."""
        return str(self.setting("method", self.path.name))

    @property
    def seed(self) -> int | None:
        """Random seed; None if the config has none."""
        return self.setting("seed")

    @property
    def last_step(self) -> int:
        """Number of the last written step; 0 before the first step."""
        return max((row["step"] for row in self.metrics), default=0)

    @property
    def has_ended(self) -> bool:
        """Whether the run has taken its last step, or has sampled all tokens of its budget."""
        budget, sampled = self.setting("sampled_tokens"), self.series("sampled_tokens")[1]
        spent = bool(budget) and len(sampled) > 0 and sampled.sum() >= budget
        return spent or self.last_step == self.setting("steps")

    def names(self) -> list[str]:
        """Names of all metrics, in the order of their first appearance."""
        return list(dict.fromkeys(n for row in self.metrics for n in row if n != "step"))

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of a metric, as int and float arrays; empty if it was never written.

        Steps with a value that is missing, null or not finite are left out.
        """
        pairs = [(r["step"], r[name]) for r in self.metrics if _is_number(r.get(name))]
        steps, values = zip(*pairs, strict=True) if pairs else ((), ())
        return np.asarray(steps, int), np.asarray(values, float)

    def common(self, *names: str) -> tuple[np.ndarray, ...]:
        """Steps at which all given metrics have a value, ascending, and the values of each
        metric."""
        columns = [dict(zip(*self.series(name), strict=True)) for name in names]
        steps = sorted(set.intersection(*map(set, columns)))
        return np.asarray(steps, int), *(np.array([c[s] for s in steps]) for c in columns)

    def sample_steps(self) -> list[int]:
        """Steps with stored responses, ascending."""
        return sorted(self._sample_files())

    def samples(self, step: int) -> list[dict[str, Any]]:
        """The stored responses of a step of `sample_steps`."""
        found = self._sample_files()
        if step not in found:
            raise ValueError(f"Run.samples: step must be one of {sorted(found)}, got {step}")
        return read_json_lines(found[step])

    def _sample_files(self) -> dict[int, Path]:
        """The files of responses by step; other files of the folder are ignored."""
        files = (self.path / "samples").glob("step_*.jsonl")
        matches = ((re.fullmatch(r"step_(\d+)", file.stem), file) for file in files)
        return {int(match[1]): file for match, file in matches if match}


def load_run(path: str | Path) -> Run:
    """Reads a run directory, finished or growing.

    Examples:
      >>> from rlvr_jax.analysis.run_directory import load_run
      >>> steps, entropy = load_run("runs/quickstart/grpo").series("entropy")  # doctest: +SKIP

    Raises:
      ValueError: there is no config.json, a complete line is not JSON, or an earlier version with
        other names of metrics wrote the run.
    """
    path = Path(path)
    if not (path / "config.json").is_file():
        raise ValueError(f"load_run: path must be a run directory with a config.json, got {path}")
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
    """Reads one JSON object per line; none without a file. A last line without a line break may be
    incomplete.
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
    """The summary; empty if it is incomplete, because the run is then writing it."""
    try:
        return json.loads(path.read_bytes()) if path.is_file() else {}
    except ValueError:
        return {}


def read_steps(path: Path) -> list[dict[str, Any]]:
    """The objects of a file with one object per step, by ascending step; none without a file."""
    rows = {}
    for row in read_json_lines(path):
        if not isinstance(row.get("step"), int):
            raise ValueError(f"load_run: {path}: step must be an int, got {row.get('step')!r}")
        rows[row["step"]] = rows.get(row["step"], {}) | row
    return [rows[step] for step in sorted(rows)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and bool(np.isfinite(value))
