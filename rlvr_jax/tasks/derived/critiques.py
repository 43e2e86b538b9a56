"""Critiques of candidate solutions: conclusions, selection, and prompts with them.

prompt     the problem, a candidate solution, and the request to criticise it
solution   the critique, which ends with "Conclusion: right [END]" or "Conclusion: wrong [END]"
"""

import re
from collections.abc import Sequence

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.verifiers.grade import Grade

__all__ = ["conclusion", "critique_prompts", "grade_critiques", "keep_critiques"]

KIND = "critique"
END = re.compile(r"conclusion:\s+(right|wrong)\s+\[end\]\s*\Z", re.IGNORECASE)
REQUEST = "\n\nIs this solution right? Go through its steps. End with Conclusion: right [END] or"
REQUEST += " Conclusion: wrong [END]."
CANDIDATE = "\n\nA solution:\n"


def conclusion(text: str) -> bool | None:
    """The conclusion of a critique, "right" or "wrong" in its last words. None if it has another
    end, is truncated or malformed."""
    found = END.search(text)
    return None if found is None else found[1].lower() == "right"


def keep_critiques(texts: Sequence[str], outcomes: Sequence[float]) -> list[bool]:
    """Which critiques have the verifier's conclusion: "right" if the outcome is 1."""
    return [
        conclusion(text) is not None and conclusion(text) == (outcome == 1)
        for text, outcome in zip(texts, outcomes, strict=True)
    ]


def critique_prompts(
    problem: str,
    candidates: Sequence[str],
    outcomes: Sequence[float],
    critiques: Sequence[str],
    candidate: str = CANDIDATE,
    request: str = REQUEST,
) -> list[Prompt]:
    """Prompts for a critique of each candidate, with the critiques as their solutions.

    A prompt is left out if its critique disagrees with the verifier.

    Args:
      problem: the problem that the candidates answer.
      outcomes, critiques: outcome and critique of each candidate.
      candidate, request: texts before and after a candidate.
    """
    agrees = keep_critiques(critiques, outcomes)
    return [
        Prompt(
            f"{problem}{candidate}{text}{request}",
            answer=outcome == 1,
            kind=KIND,
            solution=[critique],
        )
        for text, outcome, critique, there in zip(
            candidates, outcomes, critiques, agrees, strict=True
        )
        if there
    ]


def grade_critiques(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
    """A critique is correct if its conclusion agrees with the candidate's grade."""
    return [
        Grade(float(not response.truncated and conclusion(response.text) == prompt.answer))
        for prompt, response in zip(prompts, responses, strict=True)
    ]
