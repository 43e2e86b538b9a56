"""Mathematics: tasks from questions whose answers the mathematics verifier compares.

For files, `tfds` and custom modules: a list of questions becomes a task with checked golds. A
prompt requests the answer in a box, unless the question requests another form (`answer_form`),
which is then also read.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rlvr_jax.tasks.answer_form import asked_form, instructed, marked_line, needs_lines, written
from rlvr_jax.tasks.base import Prompt, Response, Task, Verify
from rlvr_jax.tasks.data.questions import Placed, consistent, split_off, without
from rlvr_jax.tasks.options import takes_options_of
from rlvr_jax.tasks.settings import (
    DropContradictions,
    HeldOutFraction,
    Instruction,
    ResponseTokens,
)
from rlvr_jax.verifiers.grade import LOST, TIMED_OUT, Grade
from rlvr_jax.verifiers.maths.extract import boxes
from rlvr_jax.verifiers.maths.verifier import MathVerifier
from rlvr_jax.verifiers.tags import prefilled_tags

LEFT_OUT = ("workers",)
"""Arguments of the verifier that depend on the machine and not on the task."""

# Multiple of the usual limit, for an answer that was not read in time when the task was made.
_PATIENCE = 10
_SECONDS = 2.0
# Number of places of dropped questions that a warning names.
_NAMED = 5


@takes_options_of(MathVerifier, leave_out=LEFT_OUT)
def mathematics(
    name: str,
    train: Sequence[Placed],
    test: Sequence[Placed] | None = None,
    response_tokens: ResponseTokens = 1024,
    *,
    held_out: HeldOutFraction = 0.1,
    instruction: Instruction = "",
    drop_contradictions: DropContradictions = False,
    notes: Sequence[str] = (),
    **grading: Any,
) -> Task:
    """A task from questions with their places, graded by the mathematics verifier.

    A question is dropped if the verifier cannot grade its answer, because a correct response would
    be punished. A warning counts these questions and names the first. If only the time was too
    short, the answer is tried again with ten times the time, so that every host of a run has the
    same questions. A gold that is graded incorrect is an error in the data and raises. A repeated
    question is used once, and a warning counts the repetitions.

    Args:
      name: of the task.
      train, test: (place, prompt), whose answer is a text or a list of alternatives. A prompt
        without gold gets the answer in the requested form as its gold. Questions of `test` are left
        out of `train`. Without `test`, a fraction `held_out` of `train` is the test split.
      notes: lines that the card of the task shows.
      **grading: options of `MathVerifier`, such as choice and relative_tolerance. `answer_line` is
        on if a question requests its answer on a line or after ####. The time of a batch is that of
        all its comparisons (at most wall_seconds each), divided among half of the machine's cores.
    Raises:
      ValueError: a fraction is outside (0, 1), a gold is incorrect, questions contradict
        themselves, or a split has no questions.
      RuntimeError: the processes that grade are repeatedly killed or fail to read a gold.
    """
    asked = [instructed(prompt, instruction) for _, prompt in [*train, *(test or ())]]
    forms = [asked_form(prompt) for prompt in asked]
    lines = grading.get("answer_line", needs_lines(forms))
    if needs_lines(forms) and not lines:
        warnings.warn(
            f"{name}: questions request their answer on a line or after ####, which answer_line"
            " = false does not read",
            stacklevel=2,
        )
    verifier = MathVerifier(**{**grading, "answer_line": lines})
    checked = _Checked(name, verifier, grading, instruction, lines)
    if test:
        test = consistent(name, checked.gradable(test), checked.same, drop_contradictions)
    train = consistent(name, checked.gradable(train), checked.same, drop_contradictions)
    if test is None:
        train, test = split_off(name, train, held_out)
    else:
        train = _fresh(name, train, test)
    for split, rows in (("train", train), ("test", test)):
        if not rows:
            raise ValueError(
                f"{name}: split {split!r} must have gradable questions, got none ({len(train)} in"
                f" train, {len(test)} in test)"
            )
    if needs_lines(forms) and lines:
        count = sum(form in ("line", "mark") for form in forms)
        notes = [*notes, f"{count} questions ask for their answer on a line, which is read"]
    return Task(
        name=name,
        train=tuple(instructed(prompt, instruction) for _, prompt in train),
        test=tuple(instructed(prompt, instruction) for _, prompt in test),
        verify=_verify(verifier),
        response_tokens=response_tokens,
        answers=True,
        notes=tuple(notes),
    )


def _verify(verifier: MathVerifier) -> Verify:
    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        golds = [prompt.answer for prompt in prompts]
        firsts = [gold if isinstance(gold, str) else gold[0] for gold in golds]
        texts = [_whole(*pair) for pair in zip(prompts, responses, strict=True)]
        grades = verifier.grade(golds, texts)
        # Correct answers are equal, in any spelling.
        return [
            replace(grade, answer=first) if grade.outcome else grade
            for grade, first in zip(grades, firsts, strict=True)
        ]

    verify.verifier = "rlvr_jax.verifiers.maths:MathVerifier"
    return verify


def _whole(prompt: Prompt, response: Response) -> str:
    """The response, after the <think> that its chat template has written."""
    opened = prefilled_tags(response.prompt_tail, ("think",))
    return _as_read(prompt, "".join([*opened, response.text]))


def _as_read(prompt: Prompt, text: str) -> str:
    """The response in the form for the verifier: an answer after #### moves to a line."""
    return marked_line(text) if asked_form(prompt) == "mark" and not boxes(text) else text


def _fresh(name: str, train: list[Placed], test: Sequence[Placed]) -> list[Placed]:
    """The train questions that are not test questions; a warning counts the others."""
    fresh = without(train, test)
    if len(fresh) < len(train):
        warnings.warn(
            f"{name}: {len(train) - len(fresh)} questions of train are also in test and were left"
            " out of train",
            stacklevel=3,
        )
    return fresh


class _Checked:
    """The verifier's results for the data themselves.

    Args:
      grading: options of the verifier.
      lines: whether answers on lines are read.
    """

    def __init__(
        self, name: str, verifier: MathVerifier, grading: dict, instruction: str, lines: bool
    ):
        self.name, self.verifier, self.instruction, self.lines = name, verifier, instruction, lines
        self.grading = grading
        self.thinks = grading.get("require_think", False)

    def same(self, pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
        """Whether two answers to a question are equal, by the verifier in either direction."""
        open_ = [pair for pair in pairs if pair[0] != pair[1]]
        asked = [(a, b) for pair in open_ for a, b in (pair, pair[::-1])]
        asked = [(a, part) for a, b in asked for part in ([b] if isinstance(b, str) else b)]
        golds = [gold for gold, _ in asked]
        texts = [written(answer, "", self.thinks) for _, answer in asked]
        grades = self.verifier.grade(golds, texts)
        equal = {
            (repr(gold), answer)
            for (gold, answer), grade in zip(asked, grades, strict=True)
            if grade.outcome
        }

        def hold(a: Any, b: Any) -> bool:
            others = [b] if isinstance(b, str) else b
            return any((repr(a), part) in equal for part in others)

        return [a == b or hold(a, b) or hold(b, a) for a, b in pairs]

    def gradable(self, rows: Sequence[Placed]) -> list[Placed]:
        """The questions whose gold is graded correct; warns about those that cannot be graded."""
        golds = [self._golds(prompt) for _, prompt in rows]
        flat = [(row[1], gold) for row, own in zip(rows, golds, strict=True) for gold in own]
        grades = iter(self._grade(flat))
        accepted, dropped = [], []
        for (place, prompt), own in zip(rows, golds, strict=True):
            each = [(gold, next(grades)) for gold in own]
            gold, grade = next((pair for pair in each if pair[1].outcome), each[0])
            if grade.stage == LOST:
                raise RuntimeError(
                    f"{self.name}: {place}: the verifier's processes must be able to read the"
                    f" answer {prompt.answer!r}, got processes that were repeatedly killed or"
                    " failed"
                )
            if grade.outcome:
                accepted.append((place, replace(prompt, gold=gold)))
            elif prompt.gold is None or grade.outcome is None or grade.timed_out:
                dropped.append(f"{prompt.answer!r} ({place})")
            else:
                raise ValueError(
                    f"{self.name}: {place}: 'gold' must be graded correct for the answer"
                    f" {prompt.answer!r}, got {gold!r}, in which the verifier reads"
                    f" {grade.answer!r}"
                )
        if dropped:
            more = ", …" if len(dropped) > _NAMED else ""
            warnings.warn(
                f"{self.name}: {len(dropped)} of {len(rows)} questions were dropped, as their"
                f" answers cannot be graded: {', '.join(dropped[:_NAMED])}{more}",
                stacklevel=3,
            )
        return accepted

    def _golds(self, prompt: Prompt) -> list[str]:
        """The gold of a prompt, or a gold from each of its answers."""
        if prompt.gold is not None:
            return [prompt.gold]
        form = asked_form(instructed(prompt, self.instruction)) if self.lines else ""
        answers = [prompt.answer] if isinstance(prompt.answer, str) else prompt.answer
        return [written(answer, form, self.thinks) for answer in answers]

    def _grade(self, pairs: Sequence[tuple[Prompt, str]]) -> list[Grade]:
        answers = [prompt.answer for prompt, _ in pairs]
        golds = [_as_read(prompt, gold) for prompt, gold in pairs]
        grades = self.verifier.grade(answers, golds)
        again = [i for i, grade in enumerate(grades) if grade.stage in (LOST, TIMED_OUT)]
        if again:
            slow = _PATIENCE * self.grading.get("wall_seconds", _SECONDS)
            settings = {**self.grading, "wall_seconds": slow, "answer_line": self.lines}
            with MathVerifier(**settings) as patient:
                second = patient.grade([answers[i] for i in again], [golds[i] for i in again])
            for i, grade in zip(again, second, strict=True):
                grades[i] = grade
        return grades
