"""Says what training did to a policy, from what the run wrote: verdicts first, then plots.

    python -m rlvr_jax.analysis.diagnose RUN
    python -m rlvr_jax.analysis.diagnose RUN --against OTHER --out page.html
    python -m rlvr_jax.analysis.diagnose RUN --json

RUN is a run directory, finished or growing, also of an older version: what it did not write is said
to be missing, with what it would take. By default its first evaluation and its start model are
compared with its last; with --against, another run's last evaluation and policy, or the weights of
a policy folder. The page is one file that loads nothing; --json prints the numbers instead.
Nothing is drawn or scored here, and no device is used.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.analysis.diagnosis.parameters import parameters
from rlvr_jax.analysis.diagnosis.practice import practice
from rlvr_jax.analysis.diagnosis.reach import reach
from rlvr_jax.analysis.diagnosis.topics import Topic
from rlvr_jax.analysis.diagnosis.uncertainty import uncertainty
from rlvr_jax.analysis.diagnosis.writing import writing
from rlvr_jax.analysis.page import embedded_json, fill, table
from rlvr_jax.analysis.run_directory import Run, load_run

__all__ = ["as_json", "diagnose", "main", "write_page"]

_LEAD = (
    "Square brackets hold 95 % bootstrap intervals over problems. They cover the choice of problems"
    " and the sampling, not the seed: another seed of the same run may end elsewhere."
)


def diagnose(
    run: str | Path, against: str | Path | None = None, weights: bool = True
) -> list[Topic]:
    """What can be said of a run.

    Args:
      run: a run directory.
      against: another run directory, or a policy folder; None: the run's own start.
      weights: whether weights are compared, where both folders are there; a model of 135 million
        parameters takes minutes.
    Raises:
      ValueError: a directory that is no run, or `against` that is neither.
    """
    own = load_run(run)
    other = _other_run(against)
    topics = [_reach(own, other), uncertainty(own), practice(own), writing(own)]
    if weights:
        topics.append(_weights(own, other, against))
    return topics


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
      topics: see `diagnose`.
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


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Says what training did to a policy.")
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument("--against", metavar="FOLDER", help="another run, or a policy folder")
    parser.add_argument("--out", default="diagnosis.html", help="the page to write")
    parser.add_argument("--json", action="store_true", help="print the numbers, write no page")
    parser.add_argument("--no-weights", action="store_true", help="leave the weights out")
    options = parser.parse_args(arguments)
    try:
        topics = diagnose(options.run, options.against, not options.no_weights)
    except ValueError as error:
        sys.exit(str(error))
    if options.json:
        print(json.dumps(as_json(topics), indent=1, ensure_ascii=False))
        return
    for topic in topics:
        for sentence in topic.sentences:
            print(f"{topic.title}: {sentence}")
    policies = ("start", "end") if options.against is None else (options.against, options.run)
    title = f"Diagnosis: {_name(load_run(options.run))}"
    print(write_page(options.out, topics, title, policies))


def _name(run: Run) -> str:
    seed = "" if run.seed is None else f", seed {run.seed}"
    return f"{run.method}{seed}, {run.setting('task', 'unknown task')}"


def _other_run(against: str | Path | None) -> Run | None:
    """The run that is meant by --against; None if it is a policy folder or nothing."""
    if against is None:
        return None
    path = Path(against)
    if (path / "metrics.jsonl").is_file():
        return load_run(path)
    if not list(path.glob("*.safetensors")):
        raise ValueError(
            f"diagnose: against must be a run directory or a policy folder, got {against}"
        )
    return None


def _reach(run: Run, other: Run | None) -> Topic:
    """The last evaluation against the first one, or against the other run's last."""
    if other is None:
        first, names = run.held_out[:1], ("the start", "the end")
        enough = len(run.held_out) > 1
    else:
        first, names = other.held_out[-1:], ("the other run", "this run")
        enough = bool(first) and bool(run.held_out)
    if not enough:
        topic = Topic("Reach")
        topic.missing.append(
            "Held-out verdicts need two evaluations that were counted problem by problem"
            " (held_out.jsonl, which older versions did not write)."
        )
        return topic
    return reach(first[0], run.held_out[-1], names)


def _weights(run: Run, other: Run | None, against: str | Path | None) -> Topic:
    """The run's policy against its start, the other run's policy, or the folder."""
    if other is not None:
        before = other.path / "policy"
    else:
        before = Path(against if against is not None else str(run.setting("model", "")))
    after = run.path / "policy"
    absent = [folder for folder in (before, after) if not list(folder.glob("*.safetensors"))]
    if absent:
        topic = Topic("Weights")
        places = " and ".join(str(folder) for folder in absent)
        topic.missing.append(f"Weights need safetensors in {places}.")
        return topic
    return parameters(before, after)


if __name__ == "__main__":
    main()
