"""A judge of brackets that makes no mistakes, to measure a rubric with a perfect judge.

python -m experiments.train --task brackets --method rubric_rewards --hyperparameters weights=2,1 \
    --judge rlvr_jax.tasks.brackets_judge:points --judge-rubric rubric.json

with criteria named `right` and `legal`, each of 1 point.
"""

from collections.abc import Mapping, Sequence

from rlvr_jax.tasks.base import Response
from rlvr_jax.tasks.brackets import brackets, problem_of


def points(messages: Sequence[Mapping[str, str]]) -> str:
    """The points of both criteria, in the form of a judge with a rubric.

    Args:
      messages: a chat whose last message has a line "Question:" before the prompt and "Answer:"
        before the response, as in `rlvr_jax.judges.rubric_question`.
    Raises:
      ValueError: the question is not a prompt of brackets.
    """
    lines = messages[-1]["content"].splitlines()
    question, answer = (lines[lines.index(f"{name}:") + 1] for name in ("Question", "Answer"))
    *numbers, target = map(int, question.removesuffix(" >").split())
    (grade,) = brackets().verify([problem_of(numbers, target)], [Response(answer)])
    return f"right: {grade.outcome:g}\nlegal: {grade.info['legal']:g}"
