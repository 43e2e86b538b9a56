"""Scores known answers before the first step, so that a verifier that cannot pay is found early.

A run whose reward is always 0 (an answer format that the verifier does not read) or never 0 (an
empty answer that passes) looks like a run that does not learn. The check costs a few grades.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_jax.tasks.base import Prompt, Response, Task

__all__ = ["KindReport", "SelfCheck", "self_check"]

_FEW = 4  # prompts that are looked at whatever it takes
_MAX_PROBLEMS = 4  # that are told of one kind


@dataclass(frozen=True)
class KindReport:
    """Mean outcomes of known answers to some prompts of one kind.

    Fields:
      kind: of the prompts.
      num_prompts: how many were asked.
      num_golds: how many of them have a gold answer.
      gold: mean outcome of the gold answers; None without golds.
      truncated: mean outcome of their first halves, marked as cut off by the budget; None without.
      empty: mean outcome of the empty answer. The means leave out grades without a verdict, and are
        None if that is all of them.
      seconds_per_grade: wall time of one grade, over all of these in one batch.
    """

    kind: str
    num_prompts: int
    num_golds: int
    gold: float | None
    truncated: float | None
    empty: float | None
    seconds_per_grade: float


@dataclass(frozen=True)
class SelfCheck:
    """What the check found; `str` of it is a table for people, with the problems below.

    Fields:
      task: name of the task.
      kinds: one report per kind.
      problems: readable sentences, one for each thing that should be looked at; empty is good.
    """

    task: str
    kinds: tuple[KindReport, ...]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"Self-check of task {self.task!r}: mean outcome of known answers",
            f"  {'kind':<16} {'prompts':>7} {'gold':>6} {'half':>6} {'empty':>6} {'ms/grade':>9}",
        ]
        for row in self.kinds:
            gold, half, empty = (
                "-" if value is None else f"{value:.2f}"
                for value in (row.gold, row.truncated, row.empty)
            )
            lines.append(
                f"  {row.kind or '(all)':<16} {row.num_prompts:>7} {gold:>6} {half:>6} {empty:>6}"
                f" {1000 * row.seconds_per_grade:>9.3f}"
            )
        return "\n".join([*lines, *(f"  PROBLEM: {sentence}" for sentence in self.problems)])


def self_check(task: Task, prompts_per_kind: int | None = None, seconds: float = 1.0) -> SelfCheck:
    """Grades gold, half and empty answers to train prompts of each kind.

    A problem is a gold answer that does not score 1, an empty answer that scores more than 0, a
    grade without a verdict, one that timed out or lacks one of the task's rewards. A kind without
    gold answers is not a problem: nothing is known about it.

    Args:
      task: to check.
      prompts_per_kind: prompts of each kind, taken at equal distances from the train split; None is
        4, and then more as long as there is time.
      seconds: what all kinds together may take, for more than 4 prompts.
    Raises:
      ValueError: prompts_per_kind below 1; the verifier gives another number of grades than asked.
    """
    if prompts_per_kind is not None and prompts_per_kind < 1:
        raise ValueError(f"self_check: prompts_per_kind must be at least 1, got {prompts_per_kind}")
    members: dict[str, list[Prompt]] = {}
    for prompt in task.train:
        members.setdefault(prompt.kind, []).append(prompt)
    reports, problems = [], []
    for kind, prompts in members.items():
        report, found = _check_kind(task, kind, _spread(prompts, prompts_per_kind or _FEW))
        if prompts_per_kind is None:
            # The first grades start the workers: those that follow are as fast as in the run.
            start = time.perf_counter()
            report, found = _check_kind(task, kind, _spread(prompts, _FEW))
            share = seconds / len(members) / max(time.perf_counter() - start, 1e-6)
            if (count := min(int(share * _FEW), len(prompts))) > _FEW:
                report, found = _check_kind(task, kind, _spread(prompts, count))
        reports.append(report)
        problems += found[:_MAX_PROBLEMS]
        if len(found) > _MAX_PROBLEMS:
            problems.append(
                f"kind {kind!r}: {len(found) - _MAX_PROBLEMS} problems more like these."
            )
    return SelfCheck(task.name, tuple(reports), tuple(problems))


def _spread(prompts: Sequence[Prompt], count: int) -> list[Prompt]:
    """This many of them, at equal distances."""
    count = min(count, len(prompts))
    return [prompts[index * len(prompts) // count] for index in range(count)]


def _check_kind(
    task: Task, kind: str, prompts: Sequence[Prompt]
) -> tuple[KindReport, tuple[str, ...]]:
    cases = [("empty", prompt, Response("")) for prompt in prompts]
    for prompt in prompts:
        if prompt.gold is not None:
            half = prompt.gold[: len(prompt.gold) // 2]
            cases.append(("gold", prompt, Response(prompt.gold)))
            cases.append(("truncated", prompt, Response(half, truncated=True)))
    start = time.perf_counter()
    grades = task.verify([prompt for _, prompt, _ in cases], [answer for *_, answer in cases])
    seconds = time.perf_counter() - start
    if len(grades) != len(cases):
        raise ValueError(
            f"self_check: verify of task {task.name!r} must give one grade per response, got"
            f" {len(grades)} for {len(cases)}"
        )
    outcomes: dict[str, list[float]] = {"gold": [], "truncated": [], "empty": []}
    problems = []
    for (case, prompt, answer), grade in zip(cases, grades, strict=True):
        outcomes[case] += [] if grade.outcome is None else [grade.outcome]
        named = f"kind {kind!r}, prompt {_short(prompt.text)}:" if kind else _short(prompt.text)
        for name in sorted({*task.rewards} - {"outcome", *grade.info}):
            problems.append(f"{named} the grade of the {case} answer lacks the reward {name!r}.")
        if grade.outcome is None:
            problems.append(
                f"{named} the {case} answer {_short(answer.text)} has no verdict: the verifier"
                " cannot say whether it is right."
            )
        elif grade.timed_out:
            problems.append(f"{named} grading the {case} answer timed out.")
        elif case == "gold" and grade.outcome != 1:
            problems.append(
                f"{named} the gold answer {_short(answer.text)} scores {grade.outcome:g} and not 1:"
                " the verifier does not read it as the answer."
            )
        elif case == "empty" and grade.outcome > 0:
            problems.append(
                f"{named} the empty answer scores {grade.outcome:g} and not 0: saying nothing is"
                " rewarded."
            )
    means = {case: sum(v) / len(v) if v else None for case, v in outcomes.items()}
    report = KindReport(
        kind=kind,
        num_prompts=len(prompts),
        num_golds=sum(case == "gold" for case, *_ in cases),
        seconds_per_grade=seconds / len(cases),
        **means,
    )
    return report, tuple(problems)


def _short(text: str, length: int = 60) -> str:
    """A text for a sentence: quoted, its middle left out if it is long."""
    if len(text) > length:
        text = f"{text[: length // 2]} … {text[-length // 2 :]}"
    return repr(text)
