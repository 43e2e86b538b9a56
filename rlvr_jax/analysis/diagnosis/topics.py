"""One subject of a diagnosis: sentences, their numbers, a table and plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_jax.analysis.page import rounded
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval

FIRST, LAST = 0, 1  # the colours of the two policies on every plot
FEWEST_PROBLEMS = 6
"""From how many on a paired test can tell a difference at 5 %: 2 / 2⁶ is the first sign test below.
A bootstrap over fewer claims too much, over a single one it has no width."""


@dataclass
class Topic:
    """Sentences, numbers and plots about one subject.

    Fields:
      title: heading.
      sentences: conclusions, most important first; each carries its numbers and intervals.
      numbers: the same as JSON values, by name.
      missing: missing conclusions, and the data that they require.
      charts: specifications as `charts.js` reads them.
      tables: (heading, head, rows).
    """

    title: str
    sentences: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    charts: list[dict[str, Any]] = field(default_factory=list)
    tables: list[tuple[str, list[str], list[list[Any]]]] = field(default_factory=list)


def curve(
    title: str,
    unit: str,
    note: str,
    x: str,
    lines: Mapping[str, Any],
    policies: Sequence[int] = (),
    **options: Any,
) -> dict[str, Any]:
    """A chart of lines.

    Args:
      lines: [[x, y], …] by label.
      policies: the policy of each line, which sets its colour. None: all lines are of the last
        policy and differ by their strokes (at most three).
      options: further fields of the chart.
    """
    series = [
        {"run": policies[place] if policies else LAST, "variant": 0 if policies else place}
        | {"label": label, "kind": "line", "window": 1, "points": rounded(points)}
        for place, (label, points) in enumerate(lines.items())
    ]
    variants = [] if policies or len(lines) < 2 else list(lines)
    chart = {"title": title, "unit": unit, "note": note, "x": {"label": x}, "variants": variants}
    return chart | {"y": None, "series": series} | options


def interval_numbers(found: PromptInterval) -> dict[str, float]:
    """An interval as JSON values."""
    return {"value": found.mean, "low": found.low, "high": found.high, "prompts": found.prompts}


def signed(found: PromptInterval) -> str:
    """ "+0.240 [+0.190, +0.290]"."""
    value, low, high = (signed_number(x) for x in (found.mean, found.low, found.high))
    return f"{value} [{low}, {high}]"


def signed_number(value: float) -> str:
    """ "+0.240", with a true minus."""
    return f"{value:+.3f}".replace("-", "−")


def direction(found: PromptInterval) -> int:
    """1 if the interval is above 0, -1 if below, else 0; 0 with fewer than FEWEST_PROBLEMS."""
    if found.prompts < FEWEST_PROBLEMS:
        return 0
    return int(found.low > 0) - int(found.high < 0)
