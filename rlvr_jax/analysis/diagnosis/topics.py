"""A topic of a diagnosis: headline numbers, sentences, their numbers, tables and plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlvr_jax.analysis.page import rounded
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval

FIRST, LAST = 0, 1  # the colours of the two policies on every plot
FEWEST_PROBLEMS = 6
"""Fewest problems with which a paired test can detect a difference at 5 %: a sign test has 2 / 2⁶.
A bootstrap over fewer problems claims too much, and over one it has no width."""


class Card(NamedTuple):
    """A headline number of the page.

    Fields:
      title, value, note: texts; the note has the interval or the unit.
    """

    title: str
    value: str
    note: str


class Table(NamedTuple):
    """A table of the page.

    Fields:
      heading: above the table.
      head, rows: cells, shown as text.
      note: below the heading; it explains the columns.
    """

    heading: str
    head: list[str]
    rows: list[list[Any]]
    note: str = ""


@dataclass
class Topic:
    """Sentences, numbers and plots about one subject.

    Fields:
      title: heading.
      sentences: conclusions, most important first; each carries its numbers and intervals.
      numbers: the numbers of the sentences as JSON values, by name.
      missing: sentences about missing conclusions, with the data that they require.
      charts: specifications as `charts.js` reads them.
      cards: headline numbers by their place: "first try", "many tries", "entropy", "change".
    """

    title: str
    sentences: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    charts: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    cards: dict[str, Card] = field(default_factory=dict)


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
      title: of the chart.
      unit: of the vertical axis.
      note: line below the title.
      x: name of the horizontal axis.
      lines: points [[x, y], …] by label.
      policies: the policy of each line, which sets its colour. None: all lines have the colour of
        the last policy and differ by their strokes (at most three).
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
    """ "+0.240 [+0.190, +0.290]", with three digits of the value."""
    digits = _digits(found.mean)
    value, low, high = (_signed(x, digits) for x in (found.mean, found.low, found.high))
    return f"{value} [{low}, {high}]"


def signed_number(value: float) -> str:
    """ "+0.240" or "+24.0": three digits, with a true minus."""
    return _signed(value, _digits(value))


def plain_number(value: float) -> str:
    """ "0.240" or "24.0": three digits."""
    return f"{value:.{_digits(value)}f}"


def p_value(p: float) -> str:
    """ "p = 0.02" or "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _digits(value: float) -> int:
    """Decimals of a number with three digits; three below 1."""
    return max(0, 3 - len(str(int(abs(value))))) if abs(value) >= 1 else 3


def direction(found: PromptInterval) -> int:
    """1 if the interval is above 0, -1 if below, else 0; 0 with fewer than FEWEST_PROBLEMS."""
    if found.prompts < FEWEST_PROBLEMS:
        return 0
    return int(found.low > 0) - int(found.high < 0)
