r"""Judges of brackets, which make no mistakes.

`points` writes the points of a rubric. `rewriter` follows a rubric and improves it. `critique`
writes a critique of a candidate. `effort` rates the effort of a response. `nearer` compares two
attempts, for methods with `compare`. The next command uses criteria with the names `right` and
`legal`, each of 1 point:

    python -m rlvr_jax train --task brackets --method rubric_rewards \
        --hyperparameters weights=2,1 --judge rlvr_jax.tasks.brackets_judge:points \
        --judge-rubric rubric.json

With `rewriter`, a policy first learns to write legal attempts. A vague rubric requires no more. The
rewritten rubric also requires the target:

    python -m rlvr_jax train --task brackets --method meta_policy \
        --judge rlvr_jax.tasks.brackets_judge:rewriter

`critique` writes critiques for a command that stores them:

    python -m rlvr_jax critiques --task brackets --model FOLDER --out critiques.jsonl \
        --critics rlvr_jax.tasks.brackets_judge:critique
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rlvr_jax.tasks.base import Prompt, Response, Verify
from rlvr_jax.tasks.bracket_equations import equation_scores
from rlvr_jax.tasks.brackets import brackets, problem_of
from rlvr_jax.tasks.derived.critiques import CANDIDATE, REQUEST
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.meta_policy import ANALYSE, MERGE, read_items


def points(messages: Sequence[Mapping[str, str]]) -> str:
    """The points of both criteria, in the form of a judge with a rubric.

    Args:
      messages: a chat whose last message has a line "Question:" before the prompt and "Answer:"
        before the response, as in `rlvr_jax.judges.rubric_question`.
    Raises:
      ValueError: the question is not a prompt of brackets.
    """
    grade = _grade(messages[-1]["content"], "Question:", "Answer:")
    return f"right: {grade.outcome:g}\nlegal: {grade.info['legal']:g}"


def effort(messages: Sequence[Mapping[str, str]]) -> str:
    """The effort of a response, 0 to 10, for correct and incorrect results.

    It has 5 points for each form with a legal attempt, and 2 for a second legal attempt of a form.

    Args:
      messages: as for `points`.
    """
    lines = messages[-1]["content"].splitlines()
    question, answer = (lines[lines.index(name) + 1] for name in ("Question:", "Answer:"))
    attempts = answer.split(" ; ")[:2]
    legal = [one for one in attempts if _graded(question, one)[1].info["legal"]]
    forms = {one.lstrip().startswith("(") for one in legal}
    return f"{5 * len(forms) + 2 * (len(legal) - len(forms))}"


REACHES = "Does the last attempt reach the requested number?"
"""The item that `rewriter` adds."""

_CRITERION = re.compile(r"(item \d+) \(0 to (\d+)\): (.*)")
_FOOLED = "It gave points to an attempt that reaches another number."


def rewriter(messages: Sequence[Mapping[str, str]]) -> str:
    """A judge: an attempt has all points of the item `REACHES` if it is correct, and those of any
    other item if it is legal. It adds `REACHES` to a rubric that was fooled by a legal attempt.

    Args:
      messages: a chat whose last message is a `rubric_question`, or a request of `evolve`.
    """
    text = messages[-1]["content"]
    if text.startswith(MERGE):
        return _lines(dict.fromkeys(item.line for item in read_items(text)))
    if "Items of a rubric" not in text:
        grade = _grade(text, "Question:", "Answer:")
        earned = {True: grade.outcome, False: grade.info["legal"]}
        found = [line for line in map(_CRITERION.fullmatch, text.splitlines()) if line]
        return _lines(f"{one[1]}: {earned[one[3] == REACHES] * int(one[2]):g}" for one in found)
    items = read_items(text.partition("\n\nPrompt:")[0])
    grade = _grade(text, "Prompt:", "Response:")
    known = any(item.text == REACHES for item in items)
    fooled = not known and grade.info["legal"] > grade.outcome
    if text.endswith(ANALYSE):
        return _FOOLED if fooled else "Nowhere."
    return _lines([*(item.line for item in items), *[f"5: {REACHES}"] * fooled])


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
    return _lines([*lines, f"Conclusion: {'right' if grade.outcome else 'wrong'} [END]"])


def nearer(batch: Any, pairs: Sequence[tuple[int, int]], *_: Any) -> tuple[np.ndarray, dict, tuple]:
    """Compares attempts: of two legal ones, that with the value nearer to the target is better.

    Args:
      batch: has `prompts` and `responses`.
      pairs: rows of the batch.
    Returns:
      The scores of both rows, [n, 2], from 0 (not legal) to 10 (correct); no metrics or replies.
    """
    asked, answers = batch.prompts, batch.responses
    rows = sorted({row for pair in pairs for row in pair})
    grades = _verify()([asked[row] for row in rows], [answers[row] for row in rows])
    scores = dict.fromkeys(rows, 0.0)
    for row, grade in zip(rows, grades, strict=True):
        if grade.info["legal"]:
            value = int(answers[row].text.split()[-1])
            scores[row] = 10 - abs(value - asked[row].answer[-1]) / 10
    return np.array([[scores[one], scores[other]] for one, other in pairs]), {}, ()


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _grade(text: str, question: str, answer: str) -> Grade:
    """The verifier's grade of the lines after two headings."""
    lines = text.splitlines()
    return _graded(*(lines[lines.index(name) + 1] for name in (question, answer)))[1]


def _graded(question: str, answer: str) -> tuple[Prompt, Grade]:
    *numbers, target = map(int, question.removesuffix(" >").split())
    prompt = problem_of(numbers, target)
    (grade,) = _verify()([prompt], [Response(answer)])
    return prompt, grade


@functools.cache
def _verify() -> Verify:
    return brackets().verify
