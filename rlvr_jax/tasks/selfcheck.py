"""Grades known answers before the first step, so that a broken verifier is found early.

A run does not learn if its reward is always 0 (the verifier does not read the format of answers) or
never 0 (an empty answer passes). The check takes a second.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.grading import grades_of, shortened
from rlvr_jax.verifiers.grade import Grade

__all__ = ["KindReport", "SelfCheck", "self_check"]

_LEAST = 4  # prompts of each kind, whatever time their grades take
_GROWTH = 3  # largest factor between the numbers of prompts of two batches
_NAMED = 4  # problems of a kind and a case that are reported individually
_LENGTH = 60  # characters of a text in a sentence
_GOLDEN = (math.sqrt(5) - 1) / 2

Case = tuple[str, Prompt, Response]


@dataclass(frozen=True)
class KindReport:
    """Mean outcomes of known answers to some prompts of one kind.

    Fields:
      kind: kind of the prompts.
      num_prompts: number of prompts.
      num_golds: number of prompts with a gold answer.
      ungraded_golds: number of ungraded gold answers.
      gold: mean outcome of the gold answers; None without golds.
      truncated: mean outcome of their first halves, marked as truncated; None without golds.
      empty: mean outcome of the empty answer. The means leave out ungraded responses, and are
        None if all are ungraded.
      wrong: mean outcome of incorrect answers: `meta["wrong"]` of the prompt, or else the gold of
        another prompt of the kind with another answer. It is above 0 if an answer fits several
        questions.
      seconds_per_grade: wall time of one grade (seconds), as a mean over one batch.
    """

    kind: str
    num_prompts: int
    num_golds: int
    gold: float | None
    truncated: float | None
    empty: float | None
    wrong: float | None
    seconds_per_grade: float
    ungraded_golds: int = 0


@dataclass(frozen=True)
class SelfCheck:
    """The findings of the check; `str` of it is a table for people, with the problems below.

    Fields:
      task: name of the task.
      kinds: one report per kind.
      problems: sentences, one for each problem; empty if there is none.
    """

    task: str
    kinds: tuple[KindReport, ...]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"Self-check of task {self.task!r}: mean outcome of known answers",
            f"  {'kind':<16} {'prompts':>7} {'gold':>6} {'half':>6} {'empty':>6} {'wrong':>6}"
            f" {'ms/grade':>9}",
        ]
        for row in self.kinds:
            means = (row.gold, row.truncated, row.empty, row.wrong)
            columns = " ".join(f"{'-' if value is None else f'{value:.2f}':>6}" for value in means)
            lines.append(
                f"  {row.kind or '(all)':<16} {row.num_prompts:>7} {columns}"
                f" {1000 * row.seconds_per_grade:>9.3f}"
            )
        without = [row.kind or "(all)" for row in self.kinds if not row.num_golds]
        if without:
            lines.append(f"  no gold answers are known of {', '.join(without)}")
        return "\n".join([*lines, *(f"  PROBLEM: {sentence}" for sentence in self.problems)])


def self_check(task: Task, prompts_per_kind: int | None = None, seconds: float = 1.0) -> SelfCheck:
    """Grades gold, half, empty and incorrect answers to train prompts of each kind.

    Examples:
      >>> from rlvr_jax import tasks
      >>> tasks.self_check(tasks.load("brackets")).problems
      ()

    A problem is a gold answer whose grade is not 1, or an empty answer with a grade above 0 that
    is not correct. An ungraded response, a time-out, or a grade without one of the task's rewards
    is also a problem. A kind without gold answers is not a problem: nothing is known about it.

    Args:
      task: the task to check.
      prompts_per_kind: prompts of each kind, spread over the train split; None: at least 4, and as
        many as can be graded in time.
      seconds: that time (seconds), for all kinds together.
    Raises:
      ValueError: prompts_per_kind is below 1.
      GradingError: the verifier fails, or does not return one grade per response.
    """
    if prompts_per_kind is not None and prompts_per_kind < 1:
        raise ValueError(f"self_check: prompts_per_kind must be at least 1, got {prompts_per_kind}")
    members: dict[str, list[Prompt]] = {}
    for prompt in task.train:
        members.setdefault(prompt.kind, []).append(prompt)
    reports, problems = [], []
    for kind, prompts in members.items():
        batches = _batches(prompts, prompts_per_kind, seconds / len(members))
        report, found = _check_kind(task, kind, batches)
        reports.append(report)
        cases = {case: [sentence for own, sentence in found if own == case] for case, _ in found}
        problems += [sentence for own in cases.values() for sentence in own[:_NAMED]]
        more = sum(max(0, len(own) - _NAMED) for own in cases.values())
        problems += [f"kind {kind!r}: and {more} more like these."] if more else []
    return SelfCheck(task.name, tuple(reports), tuple(problems))


def _batches(
    prompts: Sequence[Prompt], count: int | None, seconds: float
) -> Iterator[Sequence[Prompt]]:
    """Prompts in an order that is spread over all, once or as long as there is time."""
    step = max(1, round(len(prompts) * _GOLDEN))
    while math.gcd(step, len(prompts)) > 1:
        step += 1
    order = [prompts[place * step % len(prompts)] for place in range(len(prompts))]
    if count is not None:
        yield order[:count]
        return
    # The first grades include the start of processes and engines.
    start = time.perf_counter()
    yield order[:_LEAST]
    first = (time.perf_counter() - start) / _LEAST
    size = max(_LEAST, min(_GROWTH * _LEAST, int(seconds / max(first, 1e-9))))
    start, taken = time.perf_counter(), 0
    while size > 0 and _LEAST + taken < len(order):
        yield order[_LEAST + taken :][:size]
        taken += size
        spent = time.perf_counter() - start
        # At most as many prompts as the remaining time allows.
        size = min(_GROWTH * size, int((seconds - spent) * taken / max(spent, 1e-9)))


def _check_kind(
    task: Task, kind: str, batches: Iterator[Sequence[Prompt]]
) -> tuple[KindReport, list[tuple[str, str]]]:
    """The report of a kind, and its problems with their cases."""
    outcomes: dict[str, list[float]] = {"gold": [], "truncated": [], "empty": [], "wrong": []}
    problems, prompts, num_golds, num_cases, seconds = [], 0, 0, 0, 0.0
    for batch in batches:
        cases = _cases(batch)
        start = time.perf_counter()
        grades = grades_of(task, [p for _, p, _ in cases], [answer for *_, answer in cases])
        seconds += time.perf_counter() - start
        for (case, prompt, answer), grade in zip(cases, grades, strict=True):
            outcomes[case] += [] if grade.outcome is None else [grade.outcome]
            problems += [(case, s) for s in _problems(task, case, prompt, answer, grade)]
        prompts += len(batch)
        num_cases += len(cases)
        num_golds += sum(case == "gold" for case, *_ in cases)
    means = {case: sum(v) / len(v) if v else None for case, v in outcomes.items()}
    report = KindReport(
        kind=kind,
        num_prompts=prompts,
        num_golds=num_golds,
        ungraded_golds=num_golds - len(outcomes["gold"]),
        seconds_per_grade=seconds / num_cases,
        **means,
    )
    return report, problems


def _cases(prompts: Sequence[Prompt]) -> list[Case]:
    cases = [("empty", prompt, Response("")) for prompt in prompts]
    for prompt, other in zip(prompts, [*prompts[1:], *prompts[:1]], strict=True):
        if prompt.gold is None:
            continue
        half = prompt.gold[: len(prompt.gold) // 2]
        cases.append(("gold", prompt, Response(prompt.gold)))
        cases.append(("truncated", prompt, Response(half, truncated=True)))
        if "wrong" in prompt.meta:
            cases.append(("wrong", prompt, Response(prompt.meta["wrong"])))
        elif other.gold not in (None, prompt.gold) and other.answer != prompt.answer:
            cases.append(("wrong", prompt, Response(other.gold)))
    return cases


def _problems(
    task: Task, case: str, prompt: Prompt, answer: Response, grade: Grade
) -> Iterator[str]:
    """Sentences about one grade."""
    named = f"prompt {shortened(prompt.text, _LENGTH)}:"
    named = f"kind {prompt.kind!r}, {named}" if prompt.kind else named.removeprefix("prompt ")
    text = shortened(answer.text, _LENGTH)
    empty_is_right = isinstance(prompt.answer, str) and not prompt.answer.strip()
    for name in sorted({*task.rewards} - {"outcome", *grade.info}):
        yield f"{named} the grade of the {case} answer lacks the reward {name!r}."
    if grade.outcome is None:
        yield (
            f"{named} the {case} answer {text} is ungraded: the verifier cannot decide whether it"
            " is correct."
        )
    elif grade.timed_out:
        yield f"{named} grading the {case} answer timed out."
    elif case == "gold" and grade.outcome != 1:
        yield (
            f"{named} the gold answer {text} scores {grade.outcome:g} and not 1: the verifier does"
            " not read it as the answer."
        )
    elif case == "empty" and grade.outcome > 0 and not empty_is_right:
        yield (
            f"{named} the empty answer scores {grade.outcome:g} and not 0: saying nothing is"
            " rewarded."
        )
