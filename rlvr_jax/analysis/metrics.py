"""The metrics that every run can write, with unit, range and meaning, from metrics.toml."""

import functools
import re
import tomllib
from pathlib import Path
from typing import NamedTuple


class Declared(NamedTuple):
    """Metrics with one meaning.

    Fields:
      names: names of the metrics; `<…>` is any text.
      lines: "steps" or "evaluations", with a condition if only some of these lines have the metric.
      healthy: curve of a run that learns; "" if the metric needs no attention.
    """

    names: tuple[str, ...]
    unit: str
    range: str
    meaning: str
    lines: str = ""
    healthy: str = ""


@functools.cache
def declared(file: str = "metrics") -> tuple[Declared, ...]:
    """The metrics of a file of a run: "metrics", "held_out" or "summary"."""
    text = Path(__file__).with_suffix(".toml").read_text("utf-8")
    found = []
    for entry in tomllib.loads(text)[file]:
        names = entry.pop("name")
        found.append(Declared((names,) if isinstance(names, str) else tuple(names), **entry))
    return tuple(found)


@functools.cache
def pattern_of(name: str) -> re.Pattern[str]:
    """The regular expression of a name in which `<…>` is any text."""
    return re.compile(".+".join(map(re.escape, re.split(r"<[^>]+>", name))))


def unit_of(metric: str) -> str:
    """The unit of a metric of `metrics.jsonl`; "as written" if it belongs to a part."""
    for one in declared():
        if any(pattern_of(name).fullmatch(metric) for name in one.names):
            return one.unit
    return "as written"
