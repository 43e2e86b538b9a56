"""Page of a board: a table and a picture, made from the lines of its runs only."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from rlvr_jax.analysis.colours import COLOURS, NEUTRAL
from rlvr_jax.analysis.evidence.ranking import SEEDS_OF_A_CLAIM, Standing, standings
from rlvr_jax.analysis.page import markdown_table
from rlvr_jax.analysis.seed_statistics import Interval, mean_interval

_BESIDE = ((3, 2), "left"), ((-3, 2), "right"), ((3, -7), "left"), ((-3, -7), "right")
_CROWD = 20  # methods, from which on a picture has a second panel
# By whether pass@1 and pass@k rose (1), fell (-1), or neither is significant (0).
_KINDS = {
    (1, 1): "boundary out",
    (1, 0): "sharpened",
    (1, -1): "sharpened at a price",
    (0, 1): "wider",
    (0, 0): "undecided",
    (0, -1): "narrower",
    (-1, 1): "wider, duller",
    (-1, 0): "duller",
    (-1, -1): "unlearned",
}
_Dot = tuple[float, float]
_DOT = 22  # area of the dot of a method, square points
_LINEAR = 0.01  # nats, below which a picture's scale is not logarithmic
_FEWEST_PAIRS = 2  # for a test
_LEAST_P = 0.001  # that is written out
# Fraction of the responses to hard prompts that use the form which these prompts need.
_FORM = "hard/info/right_form"


def write_board(
    path: Path,
    title: str,
    budget: str,
    rows: Sequence[Mapping[str, Any]],
    baseline: str,
    *,
    notes: Mapping[str, str] | None = None,
    main: str = "pass@32",
    behind: Sequence[str] = (),
) -> str:
    """Writes one board as a Markdown page next to its picture, `<stem>.png`.

    Args:
      budget: question of the board and budget of every run, for the top of the page.
      rows: lines of the board; failed runs are listed by name.
      baseline: entry that all entries are compared with.
      notes: remarks on rows of the table, by entry.
      main: metric for ranks and differences.
      behind: further lines of the page.
    Returns:
      The entries above the baseline after the correction, or "none".
    """
    ended = [row for row in rows if "end" in row]
    failed = [row for row in rows if "failed" in row]
    found = standings(rows, main, baseline)
    runs = {each.entry: [r for r in ended if r["entry"] == each.entry] for each in found}
    write_picture(path.with_suffix(".png"), runs, main)
    above, *verdicts = _verdicts(found, baseline, main)
    lines = [
        f"# {title}",
        "",
        budget,
        "",
        *verdicts,
        "",
        f"Measured with: {len(ended)} runs of {len(found)} entries; commit"
        f" {_counted([row['commit'][:7] for row in ended])}; processor (name, family, model,"
        f" stepping) {_counted([row['processor'] for row in ended])}; jax"
        f" {_counted([row['versions']['jax'] for row in ended])}.",
        *_unpaired(found, baseline),
        "",
        f"Means over seeds ± half-width of a 95 % t-interval. Baseline: `{baseline}`. See"
        " [How to read a table](README.md#how-to-read-a-table) and [Limits](README.md#limits).",
        "",
        *_table(found, runs, main),
        "",
        f"![Entropy against {main}]({path.with_suffix('.png').name})",
    ]
    known = {entry: note for entry, note in (notes or {}).items() if entry in runs}
    if known:
        lines += ["", *(f"- `{entry}`: {note}" for entry, note in known.items())]
    if behind:
        lines += ["", *behind]
    if failed:
        lines += ["", "Runs that failed:", ""]
        lines += [f"- `{row['entry']}`, seed {row['seed']}: {row['failed']}" for row in failed]
    path.write_text("\n".join(lines) + "\n")
    return above


def write_picture(
    path: Path, runs: Mapping[str, Sequence[Mapping[str, Any]]], main: str = "pass@32"
) -> None:
    """Draws entropy at the last evaluation against held-out pass@k: a large dot per method, a small
    dot per run. Outliers are labelled first; a label that would cover a label or a dot is omitted.
    With many methods a second panel shows the middle of the cloud and has its labels.
    """
    points = {
        entry: [(row["end"].get("entropy", math.nan), row["end"][main]) for row in own]
        for entry, own in runs.items()
    }
    middles = {
        entry: (_mean([x for x, _ in own]), _mean([y for _, y in own]))
        for entry, own in points.items()
    }
    crowded = len(runs) > _CROWD
    figure = Figure(figsize=(8, 10 if crowded else 5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(2 if crowded else 1, squeeze=False)[:, 0]
    start = _mean([row["start"][main] for own in runs.values() for row in own])
    for axes in panels:
        for entry, own in points.items():
            axes.scatter(*zip(*own, strict=True), s=8, color=NEUTRAL, zorder=1)
            axes.scatter(*middles[entry], s=_DOT, color=COLOURS[0], zorder=2)
        axes.axhline(start, color="0.5", linewidth=0.8, linestyle="--")
        axes.set_xlabel("entropy of the held-out responses at the end, nats per token")
        axes.set_ylabel(f"held-out {main} at the end (dashed: at the start)")
        axes.set_xscale("symlog", linthresh=_LINEAR)
        known = [x for own in points.values() for x, _ in own if x == x]
        # Room for names; nothing to the left where nothing is.
        axes.set_xlim(-0.001 if min(known) < _LINEAR else 0.8 * min(known), 5 * max(known))
    if crowded:
        _look_at_the_middle(panels[1], list(middles.values()))
    figure.draw_without_rendering()
    named = _visible(panels[-1], middles)
    _name_dots(panels[-1], named, named, canvas)
    if crowded:
        rest = {entry: dot for entry, dot in middles.items() if entry not in named}
        _name_dots(panels[0], _visible(panels[0], middles), rest, canvas)
    figure.savefig(path, dpi=110)


def _look_at_the_middle(axes: Axes, dots: Sequence[tuple[float, float]]) -> None:
    """Shows the part of a panel in which most dots are."""
    for values, limit in zip(zip(*dots, strict=True), (axes.set_xlim, axes.set_ylim), strict=True):
        known = [value for value in values if value == value]
        low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
        inside = [value for value in known if abs(value - middle) <= 3 * (high - low)]
        room = 0.05 * (max(inside) - min(inside)) or 0.01
        limit(min(inside) - room, max(inside) + 3 * room)
    axes.set_xscale("linear")


def _visible(axes: Axes, dots: Mapping[str, _Dot]) -> dict[str, _Dot]:
    window = axes.get_window_extent()
    return {entry: d for entry, d in dots.items() if window.contains(*axes.transData.transform(d))}


def _name_dots(
    axes: Axes, dots: Mapping[str, _Dot], named: Mapping[str, _Dot], canvas: FigureCanvasAgg
) -> None:
    """Writes names of dots, if they cover neither another dot nor another name."""
    seen = {entry: axes.transData.transform(dot) for entry, dot in dots.items()}
    if not seen:
        return
    window, middle = axes.get_window_extent(), np.median(list(seen.values()), axis=0)
    size = canvas.figure.dpi / 72 * _DOT**0.5 / 2
    covered = {entry: Bbox([place - size, place + size]) for entry, place in seen.items()}
    taken: list[Bbox] = []
    far_first = sorted(seen.keys() & named, key=lambda name: -np.hypot(*(seen[name] - middle)))
    for entry in far_first:
        for offset, side in _BESIDE:
            text = axes.annotate(
                entry, dots[entry], fontsize=6, xytext=offset, textcoords="offset points", ha=side
            )
            box = text.get_window_extent(canvas.get_renderer())
            inside = window.contains(box.x0, box.y0) and window.contains(box.x1, box.y1)
            others = [*taken, *(one for name, one in covered.items() if name != entry)]
            if inside and not any(box.overlaps(other) for other in others):
                taken.append(box)
                break
            text.remove()


def _counted(names: Sequence[str]) -> str:
    """Names with the number of runs of each, where there are several."""
    found = {name: names.count(name) for name in sorted(set(names))}
    if len(found) == 1:
        return names[0]
    return ", ".join(f"{name} ({n} run{'s' * (n > 1)})" for name, n in found.items())


def _unpaired(found: Sequence[Standing], baseline: str) -> list[str]:
    """A sentence about runs without a paired run of the baseline."""
    own = [each for each in found if each.entry != baseline]
    alone = sum(len(each.values.values) - each.pairs for each in own)
    if not alone:
        return []
    return [
        "",
        f"Runs without a run of `{baseline}` with the same seed, commit, processor and version of"
        f" JAX: {alone}. They count in means, but not in differences, `p` or ranks.",
    ]


def _table(
    found: Sequence[Standing], runs: Mapping[str, Sequence[Mapping[str, Any]]], main: str
) -> list[str]:
    """The table, with a column on the rare form where the task has one."""
    ends = [row["end"] for own in runs.values() for row in own]
    rare = any(_FORM in end for end in ends)
    head = ["method", "effect", "seeds", "pass@1", main, f"{main} − baseline", "p"]
    head += ["rank", "entropy", *(["rare form"] if rare else [])]
    lines = markdown_table(head, (_line(each, runs[each.entry], main, rare) for each in found))
    return lines


def _line(
    standing: Standing, rows: Sequence[Mapping[str, Any]], main: str, rare: bool
) -> list[str]:
    first, second, third = (_interval(rows, name) for name in ("pass@1", main, "entropy"))
    ranks = f"{standing.ranks[0]}–{standing.ranks[1]}" if standing.ranks else "–"
    p = "–" if math.isnan(standing.holm) else f"{standing.holm:.3f}"
    p = "< 0.001" if standing.holm < _LEAST_P else p
    gap = standing.difference.signed if standing.difference.values else ""
    seeds = str(len(rows))
    if standing.pairs not in (0, len(rows)):
        seeds += f", {standing.pairs} paired"
    cells = [f"`{standing.entry}`", _kind(rows, main), seeds, str(first), str(second), gap, p]
    cells += [ranks, str(third)]
    if rare:
        forms = [(row["start"].get(_FORM), row["end"].get(_FORM)) for row in rows]
        cell = "–"
        if all(None not in pair for pair in forms):
            risen = sum(end > start for start, end in forms)
            cell = f"{_mean([end for _, end in forms]):.2f}, {risen} of {len(forms)}"
        cells.append(cell)
    return cells


def _kind(rows: Sequence[Mapping[str, Any]], main: str) -> str:
    """Effect of training on pass@1 and pass@k."""
    signs = []
    for number in ("pass@1", main):
        risen = mean_interval([row["end"][number] - row["start"][number] for row in rows])
        if not risen.exists:
            return "–"
        signs.append(int(risen.excludes_zero) * (1 if risen.mean > 0 else -1))
    return _KINDS[signs[0], signs[1]]


def _verdicts(found: Sequence[Standing], baseline: str, main: str) -> list[str]:
    """The entries above the baseline, then lines about the differences: those that survive the
    correction, those that do not, and entries with too few seeds to compare."""
    above = [f"`{each.entry}`" for each in found if each.is_apart and each.difference.mean > 0]
    below = [f"`{each.entry}`" for each in found if each.is_apart and each.difference.mean < 0]
    early = [f"`{each.entry}`" for each in found if each.looks_apart and not each.is_apart]
    others = [each for each in found if each.entry != baseline]
    alone = [f"`{each.entry}`" for each in others if each.pairs < _FEWEST_PAIRS]
    rest = [each for each in others if not each.looks_apart and each.pairs >= _FEWEST_PAIRS]
    names = ", ".join(above) or "none"
    lines = [
        names,
        f"- Above `{baseline}` on {main} after Holm's correction: {names}.",
        f"- Below `{baseline}`: {', '.join(below) or 'none'}.",
    ]
    if early:
        lines.append(
            f"- Significant, but with fewer than the {SEEDS_OF_A_CLAIM} pairs that a claim needs"
            f" (`--entries {baseline} …`, `--seeds {SEEDS_OF_A_CLAIM}`): {', '.join(early)}."
        )
    if rest:
        plain = sum(each.difference.excludes_zero for each in rest)
        lines.append(
            f"- Entries that are not distinguishable from `{baseline}` with these seeds:"
            f" {len(rest)}. Without the correction, the intervals of {plain} of them exclude 0; by"
            " chance, one in twenty does."
        )
    if alone:
        lines.append(f"- Fewer than {_FEWEST_PAIRS} pairs to compare: {', '.join(alone)}.")
    return lines


def _interval(rows: Sequence[Mapping[str, Any]], number: str) -> Interval:
    return mean_interval([row["end"].get(number, math.nan) for row in rows])


def _mean(values: Sequence[float]) -> float:
    return mean_interval(values).mean
