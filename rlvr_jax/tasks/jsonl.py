"""Jsonl: a file of mathematics questions, one JSON object a line.

    {"prompt": "What is 3/4 of 20?", "answer": "15"}
    {"prompt": "Solve x^2 = 4.", "answer": "{-2, 2}", "kind": "algebra", "gold": "\\\\boxed{2, -2}"}

`answer` (text or a number) is compared by the mathematics verifier, which reads what stands in
`\\boxed{…}` in a response. `kind` splits the curves. `gold` is a response that must earn full
reward; without one it is the boxed answer.

Which questions are dropped, and when a `gold` is an error, says `mathematics`. A question that
stands twice in a file is kept once, and a warning counts them; with two answers it is an error.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.mathematics import BOXED, instructed, mathematics, same_answer

__all__ = ["jsonl"]

_FIELDS = ("prompt", "answer", "kind", "gold")


def jsonl(
    path: str,
    test_path: str | None = None,
    held_out: float = 0.1,
    instruction: str = BOXED,
    response_tokens: int = 1024,
    wall_seconds: float = 2.0,
) -> Task:
    """The questions of a file as a task.

    Args:
      path: the file; questions to learn from, and to evaluate if there is no `test_path`.
      test_path: a second file, of questions to evaluate only; those that are in `path` as well are
        left out of the train split, and a warning counts them.
      held_out: without `test_path`, the share of the questions to evaluate. A question is held out
        by a hash of its text, so that it stays in its split when lines are added or moved and
        whatever the instruction is.
      instruction: added to each question; one that asks for a box, as the default does, is left out
        where the question asks for one.
      response_tokens: budget of a response.
      wall_seconds: limit of one comparison of two expressions.
    Raises:
      ValueError: a share outside (0, 1); a file that is missing, not UTF-8 or empty; a line that
        is not such an object (with its number); a question with two answers; a wrong gold; a split
        without questions.
    """
    if test_path is None and not 0 < held_out < 1:
        raise ValueError(f"jsonl: held_out must be in (0, 1), got {held_out}")
    train = _read(path)
    if test_path is None:
        test = [row for row in train if _hash(row[1].text) < held_out]
        train = [row for row in train if _hash(row[1].text) >= held_out]
    else:
        test = _read(test_path)
    train, test = (
        [(place, replace(p, text=instructed(p.text, instruction))) for place, p in rows]
        for rows in (train, test)
    )
    return mathematics(f"jsonl:{path}", train, test, response_tokens, wall_seconds)


def _read(path: str) -> list[tuple[str, Prompt]]:
    """The questions of a file with the place of each, every question once."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"jsonl: path must be a readable UTF-8 file, got {path}: {error}"
        ) from None
    rows: dict[str, tuple[str, Prompt]] = {}
    again = []
    # Not splitlines: JSON text may hold U+2028, which ends a line for it.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{path}, line {number}"
            prompt = _prompt(place, line)
            first, kept = rows.setdefault(prompt.text, (place, prompt))
            if kept is prompt:
                continue
            if not same_answer(kept.answer, prompt.answer):
                raise ValueError(
                    f"jsonl: {place}: 'answer' must be that of the same question before,"
                    f" {kept.answer!r} ({first}), got {prompt.answer!r}"
                )
            again.append(place)
    if not rows:
        raise ValueError(f"jsonl: path must have at least one question, got none in {path}")
    if again:
        warnings.warn(
            f"jsonl: {len(again)} questions stand in the file before and were left out, the first"
            f" of {again[0]}",
            stacklevel=3,
        )
    return list(rows.values())


def _prompt(place: str, line: str) -> Prompt:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"jsonl: {place}: must be a JSON object, got {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"jsonl: {place}: must be a JSON object, got {type(row).__name__}")
    unknown = sorted(set(row) - set(_FIELDS))
    if unknown:
        raise ValueError(f"jsonl: {place}: fields must be among {_FIELDS}, got {unknown}")
    answer = row.get("answer")
    if isinstance(answer, (int, float)) and not isinstance(answer, bool) and math.isfinite(answer):
        answer = str(answer)
    values = {"prompt": row.get("prompt"), "answer": answer}
    values |= {key: row[key] for key in ("kind", "gold") if row.get(key) is not None}
    for key, value in values.items():
        if not isinstance(value, str) or (key != "kind" and not value.strip()):
            wanted = "text or a number" if key == "answer" else "text"
            seen = repr(row[key]) if key in row else "no such field"
            raise ValueError(f"jsonl: {place}: {key!r} must be {wanted}, got {seen}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"jsonl: {place}: {key!r} must be text, got half a character: {error}"
            ) from None
    return Prompt(
        text=values["prompt"],
        answer=answer,
        kind=values.get("kind", ""),
        gold=values.get("gold"),
    )


def _hash(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
