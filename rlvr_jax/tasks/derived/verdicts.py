r"""Verdicts on solutions as additional prompts of a task: is this solution correct?

The answer is the label, true or false. A response has it in its last \conclusion{…}
(`rlvr_jax.verifiers.texts.critique_rl`).
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.verifiers.grade import Grade

__all__ = ["KIND", "Labelled", "with_verdicts"]

KIND = "verdict"
_VERIFY = verifier_of("rlvr_jax.verifiers.texts.critique_rl", workers=0)

ASK = (
    "{problem}\n\nA solution:\n{solution}\n\nIs it right? Go through it, and end with"
    " \\conclusion{{True}} or \\conclusion{{False}}."
)


class Labelled(NamedTuple):
    """A solution and whether it is correct.

    Fields:
      problem: the question.
      solution: a solution of it.
      right: whether it is correct, by tests or a verifier.
    """

    problem: str
    solution: str
    right: bool


def with_verdicts(
    task: Task, labelled: Sequence[Labelled], fraction: float = 0.2, request: str = ASK
) -> Task:
    """The task with prompts that request a verdict on a solution, of kind "verdict".

    The test prompts do not change. Labels should be balanced, or a constant verdict has a reward.

    Args:
      labelled: solutions, one prompt each; several solutions of one problem are several prompts.
      fraction: fraction of a batch, in (0, 1); the task's kinds divide the rest as before.
      request: template of the prompt, with {problem} and {solution}.
    Raises:
      ValueError: the fraction is out of range, there are no solutions, or all labels are equal.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"with_verdicts: fraction must be in (0, 1), got {fraction}")
    labels = {bool(one.right) for one in labelled}
    if len(labels) < 2:
        raise ValueError(
            f"with_verdicts: labelled must have solutions of both labels, got {len(labelled)}, of"
            f" labels {sorted(labels)}"
        )
    prompts = [
        Prompt(
            request.format(problem=one.problem, solution=one.solution),
            answer=bool(one.right),
            kind=KIND,
            gold=f"\\conclusion{{{bool(one.right)}}}",
        )
        for one in labelled
    ]
    mixture = task.mixture or Counter(prompt.kind for prompt in task.train)
    whole = sum(mixture.values())
    fractions = {kind: (1 - fraction) * weight / whole for kind, weight in mixture.items()}

    def verify(asked: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        found: dict[int, Grade] = {}
        for own, grade in ((True, _VERIFY), (False, task.verify)):
            rows = [row for row, prompt in enumerate(asked) if (prompt.kind == KIND) == own]
            if rows:
                grades = grade([asked[row] for row in rows], [responses[row] for row in rows])
                # Rewards of the task do not apply to these prompts.
                nan = {name: math.nan for name in task.rewards if own and name != "outcome"}
                for row, one in zip(rows, grades, strict=True):
                    found[row] = dataclasses.replace(one, info={**nan, **one.info})
        return [found[row] for row in range(len(asked))]

    return dataclasses.replace(
        task,
        name=f"{task.name}+verdicts",
        train=[*task.train, *prompts],
        verify=verify,
        mixture={**fractions, KIND: fraction},
    )
