"""Answers that independent solutions agree on, and questions that are hard enough."""

import re
from collections.abc import Callable, Sequence

from rlvr_jax.verifiers.maths.verifier import verify_math

__all__ = ["agreement", "difficulty", "equal_answers", "gated_reward", "names_answer"]

Equal = Callable[[str, str], bool]


def equal_answers(one: str, two: str) -> bool:
    """Whether two answers are the same value, by the verifier of mathematics."""
    return bool(verify_math(one, f"\\boxed{{{two}}}").correct)


def agreement(
    answers: Sequence[str | None], source: str | None = None, equal: Equal = equal_answers
) -> tuple[bool, str | None]:
    """Whether all answers are there and equal in pairs, the source's among them, and the answer.

    Args:
      answers: of independent solutions, None where one gives none.
      source: the answer that came with the question, if there is one; it is the one that is taken.
      equal: (answer, answer) -> whether they are the same.
    Returns:
      (keep, answer); the answer of what is not kept is None.
    Source: DeepMath-103K.
    """
    known = [*([] if source is None else [source]), *answers]
    if not answers or any(answer is None for answer in answers):
        return False, None
    pairs = ((a, b) for place, a in enumerate(known) for b in known[place + 1 :])
    return (True, known[0]) if all(equal(a, b) for a, b in pairs) else (False, None)


def difficulty(ratings: Sequence[float], least: float = 5.0) -> tuple[float, bool]:
    """The mean rating, and whether it is at least `least`.

    Raises:
      ValueError: no ratings.
    """
    if not len(ratings):
        raise ValueError("difficulty: ratings must be at least one number, got none")
    mean = sum(ratings) / len(ratings)
    return mean, mean >= least


def names_answer(question: str, answer: str) -> bool:
    """Whether a question states its answer, white space and case aside: to be looked at."""
    question, answer = (" ".join(text.lower().split()) for text in (question, answer))
    return bool(re.search(rf"(?<![\w.]){re.escape(answer)}(?![\w.]*\w)", question))


def gated_reward(response: str, gold: str, gate: str) -> float | None:
    """+1 for a right answer in the form of the gate, else -1; None for a gold nobody can read.

    Args:
      gate: "think": behind the last </think>, which must be there; "box": \\boxed exactly once.
    Raises:
      ValueError: another gate.
    Source: https://github.com/zwhe99/DeepMath, which also passes answers within 10^-4 of the gold;
      ours is exact.
    """
    if gate not in ("think", "box"):
        raise ValueError(f"gated_reward: gate must be 'think' or 'box', got {gate!r}")
    if gate == "think":
        _, there, graded = response.rpartition("</think>")
        open_ = bool(there)
    else:
        graded, open_ = response, response.count("\\boxed") == 1
    verdict = verify_math(gold, graded if open_ else "")
    if verdict.correct is None:
        return None
    return 1.0 if open_ and verdict.correct else -1.0
