"""Jsonl: a file of mathematics questions, one JSON object a line.

    {"prompt": "What is 3/4 of 20?", "answer": "15"}
    {"prompt": "Solve x^2 = 4.", "answer": "{-2, 2}", "kind": "algebra", "gold": "\\\\boxed{2, -2}"}

`answer` (text or a number) is compared by the mathematics verifier, which reads the last
`\\boxed{…}` of a response. `kind` splits the curves. `gold` is a response that must earn full
reward; without one it is the boxed answer.

An answer that the verifier cannot grade (or not in time) would punish whoever finds it, so such a
question is dropped, and a warning counts them and names the first. A `gold` that is graded wrong
stands for a mistake in the file and is an error.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlvr_jax.tasks.base import Grade, Prompt, Response, Task

__all__ = ["BOXED", "jsonl", "mathematics"]

BOXED = "\n\nPut the final answer within \\boxed{}."

_FIELDS = ("prompt", "answer", "kind", "gold")
# Places of dropped questions that a warning names.
_NAMED = 5


def jsonl(
    path: str,
    test_path: str | None = None,
    held_out: float = 0.1,
    instruction: str = "",
    response_tokens: int = 1024,
) -> Task:
    """The questions of a file as a task.

    Args:
      path: the file; questions to learn from, and to evaluate if there is no `test_path`.
      test_path: a second file, of questions to evaluate only; those that are in `path` as well are
        left out of the train split, and a warning counts them.
      held_out: without `test_path`, the share of the questions to evaluate. A question is held out
        by a hash of its text, so that it stays in its split when lines are added or moved.
      instruction: added to each question, e.g. `BOXED`.
      response_tokens: budget of a response.
    Raises:
      ValueError: a share outside (0, 1); a file that is missing, not UTF-8 or empty; a line that
        is not such an object (with its number); a wrong gold; a split without questions.
    """
    if test_path is None and not 0 < held_out < 1:
        raise ValueError(f"jsonl: held_out must be in (0, 1), got {held_out}")
    train = _read(path, instruction)
    if test_path is None:
        test = [row for row in train if _hash(row[1].text) < held_out]
        train = [row for row in train if _hash(row[1].text) >= held_out]
    else:
        test = _read(test_path, instruction)
    return mathematics(f"jsonl:{path}", train, test, response_tokens)


def mathematics(
    name: str,
    train: Sequence[tuple[str, Prompt]],
    test: Sequence[tuple[str, Prompt]],
    response_tokens: int,
) -> Task:
    """A task graded by the mathematics verifier, from questions with the place each comes from.

    Args:
      name: of the task.
      train, test: (place, prompt) with answers as text; a prompt without gold gets the boxed answer
        as its gold. Questions of `test` are left out of `train`.
      response_tokens: budget of a response.
    Raises:
      ValueError: a wrong gold; a split without questions.
    """
    from rlvr_jax.verifiers.maths import MathVerifier

    verifier = MathVerifier()

    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        golds = [prompt.answer for prompt in prompts]
        verdicts = verifier.grade(golds, [response.text for response in responses])
        return [
            Grade(
                outcome=float(verdict.correct is True),
                timed_out=verdict.timed_out,
                # Right answers are written in many ways, and equal all the same.
                answer=golds[row] if verdict.correct else verdict.extracted,
            )
            for row, verdict in enumerate(verdicts)
        ]

    test = _gradable(name, test, verifier)
    train = _gradable(name, train, verifier)
    texts = {prompt.text for prompt in test}
    fresh = [prompt for prompt in train if prompt.text not in texts]
    if len(fresh) < len(train):
        warnings.warn(
            f"{name}: {len(train) - len(fresh)} questions of train are in test as well and were"
            " left out of train",
            stacklevel=2,
        )
    for split, prompts in (("train", fresh), ("test", test)):
        if not prompts:
            raise ValueError(
                f"{name}: split {split!r} must have gradable questions, got none ({len(fresh)} in"
                f" train, {len(test)} in test)"
            )
    return Task(
        name=name,
        train=tuple(fresh),
        test=tuple(test),
        verify=verify,
        response_tokens=response_tokens,
        answers=True,
    )


def _gradable(name: str, rows: Sequence[tuple[str, Prompt]], verifier) -> list[Prompt]:
    """The questions whose gold is graded right; warns about those that cannot be graded."""
    golds = [f"\\boxed{{{p.answer}}}" if p.gold is None else p.gold for _, p in rows]
    verdicts = verifier.grade([prompt.answer for _, prompt in rows], golds)
    kept, dropped = [], []
    for (place, prompt), gold, verdict in zip(rows, golds, verdicts, strict=True):
        if verdict.correct:
            kept.append(replace(prompt, gold=gold))
        elif prompt.gold is None or verdict.correct is None or verdict.timed_out:
            dropped.append(f"{prompt.answer!r} ({place})")
        else:
            raise ValueError(
                f"{name}: {place}: 'gold' must be graded right for the answer {prompt.answer!r},"
                f" got {gold!r}, in which the verifier reads {verdict.extracted!r}"
            )
    if dropped:
        warnings.warn(
            f"{name}: {len(dropped)} of {len(rows)} questions were dropped, as their answers cannot"
            f" be graded: {', '.join(dropped[:_NAMED])}{', …' if len(dropped) > _NAMED else ''}",
            stacklevel=3,
        )
    return kept


def _read(path: str, instruction: str) -> list[tuple[str, Prompt]]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"jsonl: path must be a readable UTF-8 file, got {path}: {error}"
        ) from None
    rows = []
    # Not splitlines: JSON text may hold U+2028, which ends a line for it.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{path}, line {number}"
            rows.append((place, _prompt(place, line, instruction)))
    if not rows:
        raise ValueError(f"jsonl: path must have at least one question, got none in {path}")
    return rows


def _prompt(place: str, line: str, instruction: str) -> Prompt:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"jsonl: {place}: must be a JSON object, got {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"jsonl: {place}: must be a JSON object, got {type(row).__name__}")
    unknown = sorted(set(row) - set(_FIELDS))
    if unknown:
        raise ValueError(f"jsonl: {place}: fields must be among {_FIELDS}, got {unknown}")
    answer = row.get("answer")
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        answer = str(answer)
    values = {"prompt": row.get("prompt"), "answer": answer}
    values |= {key: row[key] for key in ("kind", "gold") if row.get(key) is not None}
    for key, value in values.items():
        if not isinstance(value, str) or (key != "kind" and not value.strip()):
            wanted = "text or a number" if key == "answer" else "text"
            seen = repr(row[key]) if key in row else "no such field"
            raise ValueError(f"jsonl: {place}: {key!r} must be {wanted}, got {seen}")
    return Prompt(
        text=values["prompt"] + instruction,
        answer=answer,
        kind=values.get("kind", ""),
        gold=values.get("gold"),
    )


def _hash(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
