"""A diagnosis as one HTML page that loads nothing, and as JSON values."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.analysis.diagnosis.topics import Topic
from rlvr_jax.analysis.page import embedded_json, fill, table
from rlvr_jax.analysis.samples import shown_samples

_LEAD = (
    "Square brackets hold 95 % bootstrap intervals over problems. They cover the choice of problems"
    " and the sampling, not the seed: another seed of the same run may end elsewhere."
)
_SHOWN_TOKENS = 30_000  # on the page, both policies together
_COLUMN = "probability, second − first"
_SAMPLES_INTRO = (
    "Responses of both policies to the problems that changed most: a token's colour is the chosen"
    " column, on one scale for the whole page. Values on hover."
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
    """Writes the page; its folder is made.

    Args:
      policies: the two that are compared, for the legend.
      rows: responses of either policy to show token by token, as a run stores them, with
        `prob_delta` and `entropy_delta`, the second policy less the first, where both have the
        same tokens. Empty: none.
    Returns:
      The path.
    """
    sentences = [
        f"<li><b>{html.escape(topic.title)}.</b> {html.escape(sentence)}</li>"
        for topic in topics
        for sentence in topic.sentences
    ]
    missing = [html.escape(line) for topic in topics for line in topic.missing]
    lead = html.escape(_LEAD)
    if missing:
        lead += " Not said: " + " ".join(missing)
    blocks = [
        f"<section><h2>{html.escape(heading)}</h2>{table(head, rows)}</section>"
        for topic in topics
        for heading, head, rows in topic.tables
    ]
    sections = [
        {"title": topic.title, "intro": "", "wide": True, "charts": topic.charts}
        for topic in topics
        if topic.charts
    ]
    data: dict[str, Any] = {"runs": [{"label": label} for label in policies], "sections": sections}
    if rows:
        stored = [(number, None, own) for number, own in enumerate(rows)]
        names = ("samples", "bounds", "start")
        data |= dict(zip(names, shown_samples(stored, _SHOWN_TOKENS), strict=True))
        if any("prob_delta" in row for own in rows for row in own):
            data["column"] = _COLUMN
    page = fill(
        "comparison_page.html",
        ["charts.js", "tokens.js", "comparison.js"],
        title=html.escape(title),
        lead=lead,
        sentences="\n".join(sentences),
        tables="\n".join(blocks),
        samples=fill("token_view.html", [], intro=_SAMPLES_INTRO),
        data=embedded_json(data),
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, "utf-8")
    return path
