"""A judge of brackets that makes no mistakes: points of a rubric, and critiques of candidates.

python -m experiments.train --task brackets --method rubric_rewards --hyperparameters weights=2,1 \
    --judge rlvr_jax.tasks.brackets_judge:points --judge-rubric rubric.json

with criteria named `right` and `legal`, each of 1 point.

python -m experiments.critiques --task brackets --model FOLDER --out critiques.jsonl \
    --critics rlvr_jax.tasks.brackets_judge:critique
"""

from collections.abc import Mapping, Sequence

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.bracket_equations import equation_scores
from rlvr_jax.tasks.brackets import brackets, problem_of
from rlvr_jax.tasks.derived.critiques import CANDIDATE, REQUEST
from rlvr_jax.verifiers.grade import Grade


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
    _, grade = _graded(question, answer)
    return f"right: {grade.outcome:g}\nlegal: {grade.info['legal']:g}"


def critique(messages: Sequence[Mapping[str, str]]) -> str:
    """A critique of a candidate: each equation, the target, and the conclusion.

    Args:
      messages: a chat whose last message is a request of `tasks.derived.critiques.request_of`.
    Raises:
      ValueError: the problem is not a prompt of brackets.
    """
    problem, _, rest = messages[-1]["content"].partition(CANDIDATE)
    answer = rest.removesuffix(REQUEST)
    prompt, grade = _graded(problem, answer)
    lines, start = [], 0
    for end, score in equation_scores(prompt, answer):
        equation = answer[start:end].strip(" ();")
        lines.append(f"{equation} is {'true' if score else 'false'}.")
        start = end
    reached = "reaches" if grade.outcome else "does not reach"
    lines.append(f"The last attempt {reached} {prompt.answer[-1]}.")
    return "\n".join([*lines, f"Conclusion: {'right' if grade.outcome else 'wrong'} [END]"])


def _graded(question: str, answer: str) -> tuple[Prompt, Grade]:
    *numbers, target = map(int, question.removesuffix(" >").split())
    prompt = problem_of(numbers, target)
    (grade,) = brackets().verify([prompt], [Response(answer)])
    return prompt, grade
