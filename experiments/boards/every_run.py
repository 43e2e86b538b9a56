"""Table of every run of a board: its results, and since which step entropy or pass@1 was low."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_jax.analysis.page import markdown_table

_SMALL = 0.2
"""Fraction of the initial entropy below which these pages call entropy small; a convention."""


def every_run_table(curves: Sequence[Mapping[str, Any]], main: str) -> list[str]:
    """Markdown table with a row per run, sorted by method and seed.

    Args:
      curves: lines of `curves.jsonl` of one board. Older lines have no entropy of held-out
        responses; their rows have a dash.
      main: pass@k that is shown next to pass@1.
    """
    names = list(dict.fromkeys(curve["entry"] for curve in curves))
    head = ["method", "seed", "best pass@1, at step", "pass@1 at the end", f"{main} at the end"]
    head += ["entropy at the end", "entropy small since", "pass@1 below its start since"]
    rows = []
    for name in names:
        own = [curve for curve in curves if curve["entry"] == name]
        rows += [_row(curve, main) for curve in sorted(own, key=lambda curve: curve["seed"])]
    return [
        f"Every run. Entropy is small below {_SMALL:g} times its initial value. The columns with"
        ' "since" have the first evaluation step from which the condition held until the end. A'
        " dash: it did not hold at the end.",
        "",
        *markdown_table(head, rows),
    ]


def stays_from(steps: Sequence[int], values: Sequence[float | None], bound: float) -> int | None:
    """Step of the first evaluation from which all values are below a bound; None without one.

    Args:
      values: one per step; a missing value is not below the bound.
    """
    found = None
    for step, value in zip(reversed(steps), reversed(values), strict=True):
        if value is None or not value < bound:
            break
        found = step
    return found


def _row(curve: Mapping[str, Any], main: str) -> list[str]:
    steps = curve["step"]
    entropy = curve.get("held_out/entropy", [None] * len(steps))
    first, many = curve["held_out/pass@1"], curve[f"held_out/{main}"]
    best = max(range(len(steps)), key=lambda place: first[place])
    start = 0.0 if entropy[0] is None else entropy[0]
    lost = (
        stays_from(steps, entropy, _SMALL * start),
        stays_from(steps, first, first[0]),
    )
    cells = [f"`{curve['entry']}`", str(curve["seed"]), f"{first[best]:.3f}, {steps[best]}"]
    cells += [f"{first[-1]:.3f}", f"{many[-1]:.3f}"]
    cells += ["–" if entropy[-1] is None else f"{entropy[-1]:.4f}"]
    return [*cells, *("–" if step is None else str(step) for step in lost)]
