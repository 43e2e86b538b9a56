"""Makes the leaderboard's section of one method: a table, and its curve with the baseline's."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis.colours import COLOURS, NEUTRAL
from rlvr_jax.analysis.evidence.ranking import standings
from rlvr_jax.analysis.seed_statistics import mean_interval

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 560, 240, 44, 34, 10
_POINTS = 25
_COLOURS = (NEUTRAL, COLOURS[1])  # of the baseline, of the method


def method_section(
    method: str,
    board: str,
    baseline: str,
    rows: Sequence[Mapping[str, Any]],
    curves: Sequence[Mapping[str, Any]],
    main: str = "pass@32",
) -> list[str]:
    """Lines of Markdown about one method on one board; empty if it has no run there.

    Args:
      method: registered name; a board may have several entries of it.
      board: name of the board; lines of other boards are left out.
      baseline: entry that all others are compared with.
      rows, curves: lines of `results.jsonl` and `curves.jsonl`.
      main: metric by which entries are compared.
    """
    own = [row for row in rows if row["board"] == board and "end" in row]
    entries = list(dict.fromkeys(row["entry"] for row in own if row["method"] == method))
    if not entries or all(row["entry"] != baseline for row in own):
        return []
    found = {each.entry: each for each in standings(own, main, baseline)}
    others = [entry for entry in entries if entry != baseline]
    lines = [f"| | seeds | pass@1 | {main} | difference from baseline | entropy |"]
    lines += ["|---|---|---|---|---|---|"]
    for entry in [baseline, *others]:
        ends = [row["end"] for row in own if row["entry"] == entry]
        first, second, third = (
            mean_interval([end.get(name, math.nan) for end in ends])
            for name in ("pass@1", main, "entropy")
        )
        gap = found[entry].difference
        less = gap.signed if gap.values else ""
        lines.append(f"| `{entry}` | {len(ends)} | {first} | {second} | {less} | {third} |")
    lines += ["", f"Held-out {main} against sampled tokens: mean over seeds with a 95 %"]
    lines += ["t-interval.", ""]
    kept = [row for row in curves if row["board"] == board]
    for entry in others or [baseline]:
        shown = dict.fromkeys([baseline, entry])
        lines += [
            _picture({e: [row for row in kept if row["entry"] == e] for e in shown}, main),
            "",
        ]
    return lines


def _picture(curves: Mapping[str, Sequence[Mapping[str, Any]]], main: str) -> str:
    """Curves as one element of HTML, without an empty line, the last entry in colour."""
    bands = {entry: _band(rows, main) for entry, rows in curves.items() if rows}
    end = max(float(x[-1]) for x, *_ in bands.values())
    least = math.floor(10 * min(low.min() for _, low, _, _ in bands.values())) / 10
    most = math.ceil(10 * max(high.max() for *_, high in bands.values())) / 10
    most = max(most, least + 0.1)

    def place(x, y):
        across = _LEFT + (_WIDTH - _LEFT - 10) * x / end
        down = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (most - y) / (most - least)
        return f"{across:.1f},{down:.1f}"

    colours = dict(zip(bands, _COLOURS[-len(bands) :], strict=True))
    parts = []
    for y in np.linspace(least, most, 5):
        left, _, down = place(0, y).partition(",")
        parts.append(
            f'<line x1="{left}" x2="{_WIDTH - 10}" y1="{down}" y2="{down}" stroke="#8884"/>'
            f'<text x="{_LEFT - 6}" y="{float(down) + 4:.1f}" text-anchor="end">{y:.2f}</text>'
        )
    for number, (entry, (x, low, mean, high)) in enumerate(bands.items()):
        around = [place(*point) for point in zip(x, high, strict=True)]
        around += [place(*point) for point in zip(x[::-1], low[::-1], strict=True)]
        middle = " ".join(place(*point) for point in zip(x, mean, strict=True))
        colour = colours[entry]
        parts.append(
            f'<polygon points="{" ".join(around)}" fill="{colour}" opacity=".18"/>'
            f'<polyline points="{middle}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{_LEFT + 8}" y="{_HEIGHT - _BOTTOM - 24 + 15 * number}" fill="{colour}">'
            f"{entry}</text>"
        )
    parts.append(
        f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 8}" text-anchor="end">'
        f"{_tokens(end)} sampled tokens</text>"
    )
    return (
        f'<div><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" font-size="12"'
        f' font-family="sans-serif" fill="currentColor">{"".join(parts)}</svg></div>'
    )


def _tokens(count: float) -> str:
    return f"{count / 1e6:.1f} million" if count >= 1e6 else f"{count / 1e3:.0f} thousand"


def _band(rows: Sequence[Mapping[str, Any]], main: str) -> tuple[np.ndarray, ...]:
    """Sampled tokens; low end, mean and high end of the metric, up to the shortest run's end."""
    end = min(row["sampled_tokens"][-1] for row in rows)
    x = np.linspace(0, end, _POINTS)
    name = f"held_out/{main}"
    values = np.array([np.interp(x, row["sampled_tokens"], row[name]) for row in rows])
    found = [mean_interval(column.tolist()) for column in values.T]
    width = np.nan_to_num(np.array([each.half_width for each in found]))
    mean = np.array([each.mean for each in found])
    return x, np.clip(mean - width, 0, 1), mean, np.clip(mean + width, 0, 1)
