"""Model and task: the base's ability on the task, and the gain of each recipe.

    python -m rlvr_jax.analysis.boundary.model_task_alignment RUN [RUN …] [--k 8] [--methods NAME …]

Wu et al. 2025, "Mirage or Method? How Model-Task Alignment Induces Divergent RL Conclusions",
https://arxiv.org/abs/2508.21188. Random rewards, one example or only negative samples improve a
policy only if the pass@k of the base is high. Correct rewards always improve it. A cell is a model
and a task. pass@16 is the unbiased estimate with the training prompt and temperature. The
thresholds are ours. Correlations over a few cells are weak evidence: show the table.

The command reads run directories, or files of lines that `python -m rlvr_jax leaderboard` writes.
Its cells also separate the kinds of prompts of a task, because kinds differ in difficulty. The base
is the first evaluation. The gain is pass@1 of the last evaluation minus pass@1 of the first one,
averaged over seeds.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.run_directory import Run, load_run, read_json_lines

_ALIGNED, _UNALIGNED = 0.7, 0.3
_FEWEST_CELLS = 3
_SCORE = "pass@1"

Alignment = Literal["aligned", "unaligned", "undecided"]


class TrickGain(NamedTuple):
    """Gains of one recipe over the base.

    Fields:
      gains: gain in each cell, in the order of the cells.
      correlation: Pearson correlation of gain and pass@16 over cells. None with fewer than 3 cells,
        or if one of the two is constant.
      aligned, unaligned: mean gain in these cells; None without such cells.
    """

    gains: tuple[float, ...]
    correlation: float | None
    aligned: float | None
    unaligned: float | None


def alignment(pass_at_16: float) -> Alignment:
    """ "aligned" for pass@16 ≥ 0.7, "unaligned" for pass@16 ≤ 0.3, else "undecided"."""
    if pass_at_16 >= _ALIGNED:
        return "aligned"
    return "unaligned" if pass_at_16 <= _UNALIGNED else "undecided"


def gains_by_alignment(
    pass_at_16: ArrayLike, gains: Mapping[str, Sequence[float]]
) -> dict[str, TrickGain]:
    """Relates the gains of each recipe to the base's pass@16.

    Args:
      pass_at_16: [cells], pass@16 of the base before training.
      gains: for each recipe, score after training minus score of the base, [cells].
    """
    reached = np.asarray(pass_at_16, float)
    kinds = np.array([alignment(value) for value in reached])
    found = {}
    for name, values in gains.items():
        gain = np.asarray(values, float)
        if gain.shape != reached.shape:
            raise ValueError(
                f"gains_by_alignment: gains of {name} must be {len(reached)}, one per cell,"
                f" got {gain.size}"
            )
        varies = len(gain) >= _FEWEST_CELLS and np.ptp(gain) > 0 and np.ptp(reached) > 0
        found[name] = TrickGain(
            tuple(gain.tolist()),
            float(np.corrcoef(gain, reached)[0, 1]) if varies else None,
            _mean(gain[kinds == "aligned"]),
            _mean(gain[kinds == "unaligned"]),
        )
    return found


class CellGain(NamedTuple):
    """The result of one run in one cell.

    Fields:
      method: name of the recipe. cell: model, task and kind of prompt, as text.
      base: pass@k of the first evaluation. gain: change of pass@1 from the first evaluation to the
        last.
    """

    method: str
    cell: str
    base: float
    gain: float


def cells_of_run(run: Run, k: int) -> list[CellGain]:
    """The cells of a run directory: one for each kind of prompts, else one for the task.

    Raises:
      ValueError: the run lacks two evaluations with pass@1 and pass@k.
    """
    prefix = "held_out/"
    values = {
        name.removeprefix(prefix): run.series(name)[1]
        for name in run.names()
        if name.startswith(prefix)
    }
    first, last = (
        {name: float(own[place]) for name, own in values.items() if len(own) > 1}
        for place in (0, -1)
    )
    model = Path(str(run.setting("model", ""))).name
    found = list(_cells(run.method, f"{model} {run.setting('task', '')}".strip(), first, last, k))
    if not found:
        raise ValueError(
            f"cells_of_run: {run.path} must have two evaluations with {_SCORE} and pass@{k} in"
            f" metrics.jsonl (--evaluate-every), got {', '.join(values) or 'none'}"
        )
    return found


def cells_of_lines(path: Path, k: int) -> list[CellGain]:
    """The cells of a file with a line for each run, as `python -m rlvr_jax leaderboard` writes.

    Raises:
      ValueError: no line has both evaluations.
    """
    found = []
    for line in read_json_lines(path):
        if isinstance(line.get("start"), dict) and isinstance(line.get("end"), dict):
            settings = line.get("settings") or {}
            task = str(settings.get("task") or line.get("board", ""))
            method = str(line.get("entry") or line.get("method"))
            found += _cells(method, task, line["start"], line["end"], k)
    if not found:
        raise ValueError(
            f"cells_of_lines: {path} must have lines with start and end and pass@{k}, got none"
        )
    return found


def _cells(
    method: str, place: str, first: Mapping[str, Any], last: Mapping[str, Any], k: int
) -> Iterator[CellGain]:
    wanted = (_SCORE, f"pass@{k}")
    kinds = [
        name.removesuffix(f"/{_SCORE}")
        for name in first
        if name.endswith(f"/{_SCORE}") and name.count("/") == 1
    ]
    for kind in kinds if len(kinds) > 1 else [""]:
        start, reached = (f"{kind}/{name}" if kind else name for name in wanted)
        if {start, reached} <= first.keys() and start in last:
            gain = last[start] - first[start]
            yield CellGain(method, f"{place} {kind}".strip(), first[reached], gain)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the cells by the base's pass@k, and the gains of every method in them."""
    parser = argparse.ArgumentParser(description="Gains of methods by the pass rate of the base.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory, or a .jsonl file")
    parser.add_argument(
        "--k", type=int, default=8, help="k of the pass@k of the initial policy (default: 8)"
    )
    parser.add_argument(
        "--methods", nargs="*", metavar="NAME", help="methods to compare (default: all)"
    )
    options = parser.parse_args(arguments)
    try:
        found = [
            cell
            for path in map(Path, options.runs)
            for cell in (
                cells_of_lines(path, options.k)
                if path.is_file()
                else cells_of_run(load_run(path), options.k)
            )
        ]
    except ValueError as error:
        sys.exit(f"error: {error}")
    known = list(dict.fromkeys(each.method for each in found))
    for name in options.methods or ():
        if name not in known:
            sys.exit(f"--methods must be of {', '.join(known)}, got {name!r}")
    found = [each for each in found if each.method in (options.methods or known)]
    base, gains = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for each in found:
        base[each.cell].append(each.base)
        gains[each.method][each.cell].append(each.gain)
    reached = {cell: float(np.mean(values)) for cell, values in base.items()}
    order = sorted(reached, key=reached.__getitem__)
    print(f"cells, by pass@{options.k} of the base")
    for number, cell in enumerate(order, start=1):
        print(f"  {number:2} {reached[cell]:.3f} {alignment(reached[cell]):<9} {cell}")
    head = " ".join(f"{number:>7}" for number in range(1, len(order) + 1))
    print(f"gain of pass@1 by cell\n  {head}  unaligned  aligned  correlation  runs  method")
    for method, own in gains.items():
        cells = [cell for cell in order if cell in own]
        each = gains_by_alignment(
            [reached[cell] for cell in cells],
            {method: [float(np.mean(own[cell])) for cell in cells]},
        )[method]
        row = " ".join(
            f"{each.gains[cells.index(cell)]:+7.3f}" if cell in own else "      –" for cell in order
        )
        runs = max(map(len, own.values()))
        print(
            f"  {row}  {_figure(each.unaligned):>9}  {_figure(each.aligned):>7} "
            f" {_figure(each.correlation):>11}  {runs:>4}  {method}"
        )
    if len(order) < _FEWEST_CELLS:
        print(f"a correlation needs {_FEWEST_CELLS} cells; there are {len(order)}")


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None


if __name__ == "__main__":
    main()
