"""Page of the methods in their shown settings: with and without the mechanism, by theme."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlvr_jax import methods
from rlvr_jax.analysis.page import markdown_table

NUMBERS = ("pass@1", "pass@8")
"""Held-out numbers by which a mechanism helps or hurts."""
_HEAD = """# Methods in their shown settings

Question: does the mechanism of each method act, and does it help on a task that ships? Each method
is trained in the setting of its card, and again without its mechanism, at equal sampled tokens.

    python -m rlvr_jax shown          # runs the missing runs
    python -m rlvr_jax shown --page   # writes this page

- Cells with two values: with the mechanism, then without it. Means over seeds.
- acts: the method's counter, mean per step.
- pass@1, pass@8, entropy (nats per token): of held-out prompts at the end.
- A number differs if its mean difference is larger than the range over the seeds of either run.
- helps: pass@1 or pass@8 is higher and the other is not lower. hurts: one is lower and the other is
  not higher. no difference: all else. With two or three seeds this is a hint, not a claim.
- Runs with the mechanism have at most {steps} steps, and models are small. They show that a
  mechanism works, not what the paper reports.
- Methods of the board [objectives](../leaderboard/objectives.md) are compared there.
"""


@dataclass(frozen=True)
class Pair:
    """Ended runs of a method with and without its mechanism, of the seeds that have both.

    Fields:
      own, without: lines of the runs, by seed in the same order.
    """

    own: Sequence[Mapping[str, Any]]
    without: Sequence[Mapping[str, Any]]

    def both(self, number: str) -> tuple[list[float], list[float]]:
        """Values of a held-out number at the end, with and without the mechanism."""
        with_it, left_out = (
            [row["end"].get(number, math.nan) for row in rows] for rows in (self.own, self.without)
        )
        return with_it, left_out

    def direction(self, number: str) -> int:
        """1: higher with the mechanism, -1: lower, 0: no difference beyond that of the seeds."""
        values, without = self.both(number)
        if len(values) < 2:  # no range to compare with
            return 0
        difference = float(np.mean(values) - np.mean(without))
        spread = max(np.ptp(values), np.ptp(without))
        return int(np.sign(difference)) if abs(difference) > spread else 0

    @property
    def differs(self) -> bool:
        """Whether a number differs by more than its seeds do."""
        return any(map(self.direction, NUMBERS))

    @property
    def verdict(self) -> str:
        """Group of the method on the page."""
        if not any(row["counter"] for row in self.own):
            return "does not act"
        if len(self.own) < 2:
            return "one seed"
        signs = {*map(self.direction, NUMBERS)} - {0}
        return {(1,): "helps", (-1,): "hurts"}.get(tuple(signs), "no difference")


_GROUPS = ("helps", "no difference", "hurts", "one seed", "does not act")


def pair_of(rows: Sequence[Mapping[str, Any]], name: str) -> Pair:
    """The runs of a method among the lines of all."""
    ended = {(row["entry"], row["seed"]): row for row in rows if "end" in row}
    seeds = [seed for entry, seed in ended if entry == name and (f"{name}:without", seed) in ended]
    return Pair([ended[name, s] for s in seeds], [ended[f"{name}:without", s] for s in seeds])


def write_page(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes README.md of the folder from the lines of its runs.

    Raises:
      ValueError: no method has a pair of ended runs.
    """
    themes: dict[str, dict[str, Pair]] = {}
    for name, theme in methods.themes().items():
        if (pair := pair_of(rows, name)).own:
            themes.setdefault(theme, {})[name] = pair
    if not themes:
        raise ValueError(f"page: {folder} must have runs of a method with and without, got none")
    pairs = [pair for own in themes.values() for pair in own.values()]
    steps = max(row["steps"] for pair in pairs for row in pair.own)
    verdicts = [pair.verdict for pair in pairs]
    counts = [f"{verdicts.count(each)} {each}" for each in _GROUPS if each in verdicts]
    lines = [*_HEAD.format(steps=steps).splitlines(), ""]
    lines += [f"{len(verdicts)} methods: {', '.join(counts)}."]
    head = ["method", "task", "verdict", "acts", *NUMBERS, "entropy", "seeds", "minutes"]
    for theme, own in sorted(themes.items()):
        in_order = sorted(own, key=lambda name: _GROUPS.index(own[name].verdict))
        lines += ["", f"## {theme.replace('_', ' ').capitalize()}", ""]
        lines += markdown_table(head, [_line(name, own[name]) for name in in_order])
    if failed := [row for row in rows if "failed" in row]:
        lines += ["", "Runs that failed:", ""]
        lines += [f"- `{row['entry']}`, seed {row['seed']}: {row['failed']}" for row in failed]
    places = sorted({(row["commit"][:7], row["processor"]) for row in rows if "end" in row})
    lines += ["", "Measured with: " + "; ".join(f"{c} on {p}" for c, p in places) + "."]
    (folder / "README.md").write_text("\n".join(lines) + "\n")


def _line(name: str, pair: Pair) -> list[str]:
    shown = methods.method(name).shown
    counters = [np.mean([row["counter"] for row in rows]) for rows in (pair.own, pair.without)]
    acts = f"`{shown.acts.removeprefix('experience/')}` {counters[0]:.3g}, {counters[1]:.3g}"
    numbers = [
        ", ".join(f"{np.mean(values):.3f}" for values in pair.both(number))
        for number in (*NUMBERS, "entropy")
    ]
    minutes = np.mean([row["seconds"] for row in pair.own]) / 60
    return [
        f"`{name}`",
        f"`{shown.task}`",
        pair.verdict,
        acts,
        *numbers,
        str(len(pair.own)),
        f"{minutes:.1f}",
    ]
