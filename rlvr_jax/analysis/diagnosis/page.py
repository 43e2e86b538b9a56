"""A diagnosis as one HTML page without external files, and as JSON values."""

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.analysis.diagnosis.topics import Card, Topic
from rlvr_jax.analysis.page import fill, table, whole_page
from rlvr_jax.analysis.samples import shown_samples

_LEAD = (
    "pass@k is the probability that at least one of k responses to a held-out problem is correct."
    " Square brackets are 95 % bootstrap intervals over problems. They cover the choice of problems"
    " and the sampling, but not the seed: another seed of the same run can end elsewhere."
)
_PLACES = {
    "first try": "pass@1",
    "many tries": "pass@k",
    "entropy": "Entropy",
    "change": "What changed",
}
"""The first four cards, and their titles where a topic has no numbers for them."""
_SHOWN_TOKENS = 30_000  # tokens on the page, of both policies
_COLUMN = "probability, second − first"
_SAMPLES_INTRO = (
    "Responses of both policies to the problems that changed most. The colour of a token is the"
    " value of the selected column, on one scale for the whole page. Point at a token to see it."
)


def as_json(topics: Sequence[Topic]) -> dict[str, Any]:
    """Every topic's sentences, numbers and missing data, as JSON values."""
    return {
        topic.title: {
            "sentences": topic.sentences,
            "missing": topic.missing,
            "numbers": topic.numbers,
        }
        for topic in topics
    }


def write_page(
    path: str | Path,
    topics: Sequence[Topic],
    title: str,
    policies: tuple[str, str] = ("start", "end"),
    rows: tuple[Sequence[Mapping[str, Any]], ...] = (),
) -> Path:
    """Writes the page, and makes its folder if needed.

    Args:
      path: HTML file to write.
      topics: sections of the page, in order.
      title: heading of the page.
      policies: names of the two policies, for the legend.
      rows: responses of both policies that are shown token by token, in the form that a run stores.
        Empty: none. If both policies scored the tokens, rows also have `prob_delta` and
        `entropy_delta`: the second policy minus the first.
    Returns:
      The path.
    """
    subjects = [topic for topic in topics if topic.sentences or topic.charts or topic.tables]
    missing = [line for topic in topics for line in topic.missing]
    data: dict[str, Any] = {"runs": [{"label": label} for label in policies]}
    data["charts"] = [topic.charts for topic in subjects]
    if rows:
        stored = [(number, None, own) for number, own in enumerate(rows)]
        names = ("samples", "bounds", "start")
        data |= dict(zip(names, shown_samples(stored, _SHOWN_TOKENS), strict=True))
        if any("prob_delta" in row for own in rows for row in own):
            data["column"] = _COLUMN
    page = whole_page(
        "diagnosis_page.html",
        ["charts.js", "tokens.js", "diagnosis.js"],
        title,
        data,
        lead=html.escape(_LEAD),
        cards="".join(_card(*card) for card in _cards(topics, len(missing))),
        topics="".join(_subject(number, topic) for number, topic in enumerate(subjects)),
        samples=fill("token_view.html", intro=_SAMPLES_INTRO),
        missing=f'<section id="missing"><h2>Not decided</h2>{_items(missing)}</section>'
        if missing
        else "",
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, "utf-8")
    return path


def _cards(topics: Sequence[Topic], missing: int) -> list[Card]:
    """The five cards: those of the topics, and the number of missing conclusions. A page whose
    topics have no card, as that of token traces, has none."""
    found = {place: card for topic in topics for place, card in topic.cards.items()}
    if not found:
        return []
    absent = {place: Card(name, "–", "not measured") for place, name in _PLACES.items()}
    open_ = Card("Not decided", str(missing), "conclusions without data, listed at the end")
    return [*(absent | found).values(), open_]


def _card(title: str, value: str, note: str) -> str:
    title, value, note = map(html.escape, (title, value, note))
    # A line does not end within an interval.
    note = re.sub(r"\[.*?\]", lambda interval: interval[0].replace(" ", "&nbsp;"), note)
    return (
        f'<div class="card"><h3>{title}</h3><p class="value">{value}</p>'
        f'<p class="note">{note}</p></div>'
    )


def _subject(number: int, topic: Topic) -> str:
    """The section of a topic: sentences, place of the charts, and tables."""
    tables = "".join(
        f'<h3>{html.escape(each.heading)}</h3><p class="note">{html.escape(each.note)}</p>'
        f"{table(each.head, each.rows)}"
        for each in topic.tables
    )
    return (
        f'<section class="subject"><h2>{html.escape(topic.title)}</h2>{_items(topic.sentences)}'
        f'<div class="charts wide" id="charts-{number}"></div>{tables}</section>'
    )


def _items(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<ul class="findings">{items}</ul>' if lines else ""
