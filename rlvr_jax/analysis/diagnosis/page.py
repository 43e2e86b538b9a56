"""A diagnosis as one HTML page that loads nothing, and as JSON values."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.analysis.diagnosis.topics import Topic
from rlvr_jax.analysis.page import embedded_json, fill, table

__all__ = ["as_json", "write_page"]

_LEAD = (
    "Square brackets hold 95 % bootstrap intervals over problems. They cover the choice of problems"
    " and the sampling, not the seed: another seed of the same run may end elsewhere."
)


def as_json(topics: Sequence[Topic]) -> dict[str, Any]:
    """Every topic's sentences, numbers and what is missing, as JSON values."""
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
) -> Path:
    """Writes the page; its folder is made.

    Args:
      topics: see `diagnose_run` and `diagnose_answers`.
      title: heading.
      policies: the two that are compared, for the legend.
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
    page = fill(
        "comparison_page.html",
        ["charts.js", "comparison.js"],
        title=html.escape(title),
        lead=lead,
        sentences="\n".join(sentences),
        tables="\n".join(blocks),
        data=embedded_json(
            {"runs": [{"label": label} for label in policies], "sections": sections}
        ),
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, "utf-8")
    return path
