"""Selects the responses that a report shows, and the bounds of their colours."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.analysis.page import rounded
from rlvr_jax.analysis.run_directory import Run
from rlvr_jax.types import is_correct

_RESPONSE_TOKENS = 500  # shown tokens of a response; further ones are counted
_ANSWER = 100  # characters of an answer that are shown
_JUDGE = 400  # characters of a judge's reply
_COMPARISONS = 4  # shown comparisons of a response with others
_OTHER, _WORDS = 80, 200  # characters of the other response, and of the reply
_COLUMNS = ("entropy", "logp", "advantage", "ratio", "chosen", "clipped")
_COLUMNS += ("prob_delta", "entropy_delta")  # columns of a second policy on equal tokens
_COLUMNS += ("turn", "origin")  # columns with author and turn of a token

Row = dict[str, Any]


def stored_samples(runs: Sequence[Run]) -> list[tuple[int, int, list[Row]]]:
    """(run, step, rows) of the first and the last step of each run with stored responses."""
    stored = []
    for number, run in enumerate(runs):
        steps = run.sample_steps()
        stored += [
            (number, step, run.samples(step)) for step in dict.fromkeys(steps[:1] + steps[-1:])
        ]
    return stored


def shown_samples(
    stored: Sequence[tuple[int, int | None, list[Row]]], tokens: int
) -> tuple[list[Row], dict[str, float], list[int]]:
    """The samples of the page, the bounds of their colours, and the two that are open at first.

    Args:
      stored: (run, step, rows) as `stored_samples` returns them; the step may be None.
      tokens: approximate number of tokens on the page.
    """
    samples = []
    for number, step, rows in stored:
        groups, shown, total = _groups(rows, tokens // len(stored))
        if groups:
            note = f"n = {shown} of {total} stored responses"
            samples.append({"run": number, "step": step, "groups": groups, "note": note})
    responses = [r for s in samples for group in s["groups"] for r in group["responses"]]
    # one run: its first and its last step; several runs: their last steps
    last = {sample["run"]: index for index, sample in enumerate(samples)}
    start = list(last.values())[:2] if len(last) > 1 else list(dict.fromkeys([0, *last.values()]))
    return samples, _bounds(responses), start


def _groups(rows: Sequence[dict], budget: int) -> tuple[list[dict[str, Any]], int, int]:
    """Responses by prompt, best first, in whole groups, up to the budget of tokens."""
    by_prompt: dict[Any, list[dict]] = {}
    for row in rows:
        by_prompt.setdefault((row.get("group"), row.get("prompt")), []).append(row)
    groups, num_shown = [], 0
    for (_, prompt), members in by_prompt.items():
        members = sorted(members, key=lambda row: -number_or(row.get("outcome"), -math.inf))
        responses = []
        for member in members:
            response = _response(member)
            budget -= len(response["tokens"]) + 5
            if budget < 0:
                break
            responses.append(response)
        if not responses:
            break
        correct = sum(is_correct(number_or(row.get("outcome"), 0.0)) for row in members)
        parts = [str(members[0].get("kind") or ""), f"{correct} of {len(members)} correct"]
        if len(responses) < len(members):
            parts.append(f"{len(responses)} shown")
        note = " · ".join(filter(None, parts))
        groups.append({"prompt": str(prompt), "note": note, "responses": responses})
        num_shown += len(responses)
    return groups, num_shown, len(rows)


def _response(row: dict[str, Any]) -> dict[str, Any]:
    tokens = [str(token) for token in row.get("tokens") or []]
    response: dict[str, Any] = {
        "tokens": tokens[:_RESPONSE_TOKENS],
        "length": len(tokens),
        "spaced": _are_words(tokens, str(row.get("response") or "")),
        "outcome": rounded(number_or(row.get("outcome"), math.nan)),
        "reward": rounded(number_or(row.get("reward"), math.nan)),
        "truncated": bool(row.get("truncated")),
        "verifier": _verifier(row),
        "compared": [_comparison(own) for own in (row.get("compared") or [])[:_COMPARISONS]],
    }
    for name in _COLUMNS:
        values = row.get(name)
        if isinstance(values, list):
            values = rounded([number_or(v, math.nan) for v in values[:_RESPONSE_TOKENS]])
            response[name] = values[0] if len(set(values)) == 1 else values
    return response


def _verifier(row: dict[str, Any]) -> str:
    """Result of the verifier besides the outcome: extracted answer, and stage of the decision."""
    parts = []
    if row.get("answer") is not None:
        parts.append(f"answer {_cut(str(row['answer']), _ANSWER)}")
    if row.get("timed_out"):
        parts.append("timed out")
    elif row.get("stage"):
        parts.append(str(row["stage"]))
    if row.get("verdict") is False:
        parts.append("ungraded")
    if row.get("reply"):
        parts.append(f"judge: {_line(row['reply'], _JUDGE)}")
    return " · ".join(parts)


def _comparison(own: dict[str, Any]) -> str:
    """A judge's comparison of a response with another one."""
    place = "before" if own["first"] else "after"
    scores = "unreadable" if own["scores"] is None else "{:g} to {:g}".format(*own["scores"])
    other = f"row {own['other']} “{_line(own['response'], _OTHER)}”"
    return f"judge, {place} {other}, {scores}: {_line(own['words'], _WORDS)}"


def _line(text: Any, most: int) -> str:
    return _cut(" ".join(str(text).split()), most)


def _cut(text: str, most: int) -> str:
    return f"{text[:most]}{'…' if len(text) > most else ''}"


def _are_words(tokens: Sequence[str], text: str) -> bool:
    """Whether no token has a space (a word-level vocabulary); the page then inserts spaces."""
    start = text[:40]
    return not "".join(tokens).startswith(start) and " ".join(tokens).startswith(start)


def _bounds(responses: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Ends of the colour scales, equal for all responses so that they can be compared."""

    def values(name):
        for r in responses:
            column = r.get(name)
            yield column if isinstance(column, list) else [column] * len(r["tokens"])

    def bound(columns):
        sizes = [abs(v) for column in columns for v in column if v is not None]
        top = float(np.quantile(sizes, 0.98)) if sizes else 0.0
        return _round_up(top) if top > 0 else 1.0

    pushes = [
        [a * r for a, r in zip(*pair, strict=False) if a is not None and r is not None]
        for pair in zip(values("advantage"), values("ratio"), strict=True)
    ]
    names = ("entropy", "advantage", "prob_delta", "entropy_delta")
    found = {name: bound(values(name)) for name in names}
    return found | {"surprise": bound(values("logp")), "push": bound(pushes)}


def _round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 5, 7, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (1, 1.5, 2, 3, 5, 7, 10) if m * power >= value * (1 - 1e-9))


def number_or(value: Any, otherwise: float) -> float:
    """The value as a float, or `otherwise` if it is missing, null or no number."""
    return float(value) if isinstance(value, (int, float)) else otherwise
