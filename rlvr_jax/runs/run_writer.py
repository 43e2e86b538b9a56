"""Writes a run directory: settings, curves, samples, summary. Plain files, flushed line by line."""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.analysis.page import replace_file
from rlvr_jax.analysis.report import write_report
from rlvr_jax.console import Tracker
from rlvr_jax.experience import Batch


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file at once: a reader sees the old or the new file, never a part."""
    replace_file(path, (json.dumps(value, indent=2) + "\n").encode())


class RunWriter:
    """The files of one run that grow with its steps.

    `metrics.jsonl` has no times and memory values, so that equal runs write equal bytes. Times are
    in `timings.jsonl`. TensorBoard receives both files, trackers receive `metrics.jsonl`.
    """

    def __init__(self, directory: Path, after_step: int, trackers: Sequence[Tracker] = ()):
        """Opens the files. Lines of steps after `after_step` are removed: a killed run has written
        them after its last checkpoint."""
        from tensorboardX import SummaryWriter

        self.directory = directory
        self._trackers = list(trackers)
        self.samples: Path = directory / "samples"
        self.samples.mkdir(parents=True, exist_ok=True)
        self._files = {}
        for name in ("metrics", "timings", "held_out", "outcomes"):
            path = directory / f"{name}.jsonl"
            _keep_until(path, after_step)
            self._files[name] = path.open("a")
        for path in self.samples.glob("step_*.jsonl"):
            if int(path.stem.removeprefix("step_")) > after_step:
                path.unlink()
        self._board = SummaryWriter(
            str(directory / "tensorboard"), purge_step=after_step + 1, write_to_disk=True
        )

    def log(self, step: int, metrics: Mapping[str, float], timings: Mapping[str, float]) -> None:
        """Appends one line to each file."""
        for name, values in (("metrics", metrics), ("timings", timings)):
            self._append(name, step, {key: _plain(value) for key, value in values.items()})
            for key, value in values.items():
                if _plain(value) is not None:
                    self._board.add_scalar(f"{name}/{key}", float(value), step)
        finite = {key: value for key, value in metrics.items() if _plain(value) is not None}
        for tracker in tuple(self._trackers):
            try:
                tracker.log(finite, step)
            except Exception as failure:  # any error of a third-party server or function
                self._trackers.remove(tracker)
                warnings.warn(f"--log-to: a tracker failed and is dropped: {failure}", stacklevel=2)

    def _append(self, name: str, step: int, values: Mapping[str, Any]) -> None:
        self._files[name].write(json.dumps({"step": step, **values}) + "\n")
        self._files[name].flush()

    def write_counts(self, step: int, counts: Mapping[str, Any]) -> None:
        """Appends the counts of an evaluation, prompt by prompt, to `held_out.jsonl`."""
        self._append("held_out", step, counts)

    def write_outcomes(self, step: int, seen: Sequence[Batch]) -> None:
        """Appends a line to `outcomes.jsonl`, with all sampled groups before any filter.

        It has the numbers of the prompts, their views, and the outcomes; null if ungraded."""
        groups = [(batch, rows) for batch in seen for rows in batch.groups]
        line = {
            "number": [batch.requests[rows[0]].number for batch, rows in groups],
            "view": [batch.requests[rows[0]].view.label for batch, rows in groups],
            "outcome": [[batch.grades[row].outcome for row in rows] for batch, rows in groups],
        }
        self._append("outcomes", step, line)

    def write_samples(self, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes the stored responses of a step."""
        path = self.samples / f"step_{step:06d}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_report(self, live: bool) -> None:
        """Writes the page with the results of the run so far.

        Args:
          live: the run continues, and the page is written again. A failure is then a warning.
        """
        try:
            write_report(self.directory / "report.html", [self.directory], live=live)
        except Exception as failure:
            if not live:
                raise
            warnings.warn(f"report.html was not written: {failure}", stacklevel=2)

    def close(self) -> None:
        """Flushes and closes all files."""
        for file in self._files.values():
            file.close()
        self._board.close()
        for tracker in self._trackers:
            tracker.close()


class NoWriter:
    """Writes nothing: the `RunWriter` of all processes but the first."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


def _plain(value: Any) -> float | int | None:
    """A JSON number; None for NaN and infinities, which JSON does not have."""
    if isinstance(value, int):
        return value
    value = float(value)
    return value if math.isfinite(value) else None


def _keep_until(path: Path, step: int) -> None:
    if not path.exists():
        return
    lines = []
    for line in path.read_text().splitlines(keepends=True):
        # A line without its end was being written when the run was killed.
        if line.endswith("\n") and json.loads(line)["step"] <= step:
            lines.append(line)
    replace_file(path, "".join(lines).encode())
