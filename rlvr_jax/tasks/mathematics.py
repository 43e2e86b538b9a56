"""Mathematics: tasks from questions whose answers the mathematics verifier compares.

For `jsonl`, `tfds` and your own module: a list of questions becomes a task with checked golds.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.tasks.base import Grade, Prompt, Response, Task
from rlvr_jax.verifiers.maths import MathVerifier
from rlvr_jax.verifiers.parsing import parse_answer
from rlvr_jax.verifiers.tags import prefilled_tags

__all__ = ["BOXED", "instructed", "mathematics", "same_answer"]

BOXED = "\n\nPut the final answer within \\boxed{}."

# Of the usual limit, for an answer that was not read in time when the task was made.
_PATIENCE = 10
# Places of dropped questions that a warning names.
_NAMED = 5


def mathematics(
    name: str,
    train: Sequence[tuple[str, Prompt]],
    test: Sequence[tuple[str, Prompt]],
    response_tokens: int,
    wall_seconds: float = 2.0,
) -> Task:
    """A task graded by the mathematics verifier, from questions with the place each comes from.

    An answer that the verifier cannot grade would punish whoever finds it, so such a question is
    dropped, and a warning counts them and names the first. One that it cannot grade in time is
    tried again with ten times the time, as every host of a run has to keep the same questions. A
    gold that is graded wrong stands for a mistake in the data and is an error.

    Args:
      name: of the task.
      train, test: (place, prompt) with answers as text; a prompt without gold gets the boxed answer
        as its gold. Questions of `test` are left out of `train`.
      response_tokens: budget of a response.
      wall_seconds: limit of one comparison of two expressions. A batch takes as long as all of its
        comparisons, divided among half of the machine's cores (at most 8).
    Raises:
      ValueError: a wrong gold; a split without questions.
      RuntimeError: the processes that grade are killed, or fail to read a gold, time and again.
    """
    verifier = MathVerifier(wall_seconds=wall_seconds)

    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        golds = [prompt.answer for prompt in prompts]
        verdicts = verifier.grade(golds, [_whole(response) for response in responses])
        return [
            Grade(
                # A gold that could be read before: nobody can say, and not the policy's fault.
                outcome=None if verdict.correct is None else float(verdict.correct),
                timed_out=verdict.timed_out and verdict.correct is not None,
                # Right answers are written in many ways, and equal all the same.
                answer=golds[row] if verdict.correct else verdict.extracted,
            )
            for row, verdict in enumerate(verdicts)
        ]

    test = _gradable(name, test, verifier, wall_seconds)
    train = _gradable(name, train, verifier, wall_seconds)
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


def _whole(response: Response) -> str:
    """The response with the <think> that its chat template has written for it."""
    opened = prefilled_tags(response.prompt_tail, ("think",))
    return "".join([*opened, response.text])


def instructed(question: str, instruction: str) -> str:
    """The question with the instruction, unless both are about a box."""
    box = "\\boxed"
    return question if box in question and box in instruction else question + instruction


def same_answer(first: str, second: str) -> bool:
    """Whether two golds are read as the same value, 1/2 and \\frac12."""
    if first == second:
        return True
    values = [parse_answer(answer, choice=False) for answer in (first, second)]
    return values[0] is not None and values[0] == values[1]


def _gradable(
    name: str, rows: Sequence[tuple[str, Prompt]], verifier: MathVerifier, wall_seconds: float
) -> list[Prompt]:
    """The questions whose gold is graded right; warns about those that cannot be graded."""
    answers = [prompt.answer for _, prompt in rows]
    golds = [f"\\boxed{{{p.answer}}}" if p.gold is None else p.gold for _, p in rows]
    verdicts = verifier.grade(answers, golds)
    again = [i for i, verdict in enumerate(verdicts) if verdict.timed_out or verdict.lost]
    if again:
        with MathVerifier(wall_seconds=_PATIENCE * wall_seconds) as patient:
            second = patient.grade([answers[i] for i in again], [golds[i] for i in again])
        for i, verdict in zip(again, second, strict=True):
            verdicts[i] = verdict
    kept, dropped = [], []
    for (place, prompt), gold, verdict in zip(rows, golds, verdicts, strict=True):
        if verdict.lost:
            raise RuntimeError(
                f"{name}: {place}: the verifier's processes must be able to read the answer"
                f" {prompt.answer!r}, got processes that were killed or failed, time and again"
            )
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
