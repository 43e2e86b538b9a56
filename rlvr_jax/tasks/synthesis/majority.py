"""Labels of written problems by the majority of their answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.verifiers.grade import Grade

_ROUNDING = 1e-9  # a fraction of answers at a bound is within it


def labelled(
    problem: Prompt,
    grades: Sequence[Grade],
    task: Task,
    agreement: float,
    hardest: float,
    easiest: float,
) -> Prompt | None:
    """A written problem with its label; None if it is not accepted.

    Args:
      problem: the written problem, without a label.
      grades: of the answers to it; ungraded ones do not count.
      task: makes the label from the answer.
      agreement: fraction of the answers that the majority must have.
      hardest, easiest: bounds of the accuracy.
    """
    known = [grade for grade in grades if grade.outcome is not None]
    if not known:
        return None
    if task.read_problem is not None:
        accuracy = sum(grade.outcome for grade in known) / len(known)
    else:
        ((answer, number),) = Counter(grade.answer for grade in known).most_common(1)
        accuracy = number / len(known)
        if answer is None or accuracy < agreement:
            return None
        # The label has the type of the answer that the problem inherited.
        try:
            problem = replace(problem, answer=type(problem.answer)(answer))
        except (TypeError, ValueError):
            return None
    return problem if hardest - _ROUNDING <= accuracy <= easiest + _ROUNDING else None
