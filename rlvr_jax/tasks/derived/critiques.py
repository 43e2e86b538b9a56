"""Critiques of candidate solutions: conclusions, selection, and prompts with them.

    critiques:critiques.jsonl

prompt     the problem, a candidate solution, and the request to criticise it
solution   the critique, which ends with "Conclusion: right [END]" or "Conclusion: wrong [END]"

Each row of the file has the name of the task (`task`), a prompt of it (`problem`), a `candidate`
with its `outcome`, and a `critique`. `python -m rlvr_jax critiques` writes such files. The held-out
prompts are the problems of the task, which are solved. A policy that reads words must be given.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from rlvr_jax.ranges import Count
from rlvr_jax.tasks import load
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.synthesis.lines import read_lines, wanted
from rlvr_jax.verifiers.grade import Grade

__all__ = ["conclusion", "critique_prompts", "critiques", "grade_critiques", "keep_critiques"]
__all__ += ["request_of"]

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
    """The critiques that have the verifier's conclusion: "right" if the outcome is 1."""
    return [
        conclusion(text) is not None and conclusion(text) == (outcome == 1)
        for text, outcome in zip(texts, outcomes, strict=True)
    ]


def request_of(problem: str, text: str, candidate: str = CANDIDATE, request: str = REQUEST) -> str:
    """The problem, a candidate solution, and the request to criticise it.

    Args:
      problem: text of the problem.
      text: the candidate solution.
      candidate: text before it.
      request: text after it.
    """
    return f"{problem}{candidate}{text}{request}"


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
      candidates: solutions of the problem.
      outcomes, critiques: outcome and critique of each candidate.
      candidate, request: texts before and after a candidate.
    """
    agrees = keep_critiques(critiques, outcomes)
    return [
        Prompt(
            request_of(problem, text, candidate, request),
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


def critiques(
    path: str, response_tokens: Annotated[Count, "largest number of tokens of a critique"] = 512
) -> Task:
    """The task.

    Args:
      path: path of the file.
    Raises:
      ValueError: there is no such file, or a row has an unknown task or problem, other fields, or a
        critique that disagrees with the verifier.
    """
    file = Path(path)
    rows = read_lines(file)
    names = {str(wanted(row, "task", place, file)) for place, row in enumerate(rows)}
    if len(names) != 1:
        raise ValueError(f"critiques: rows of {path} must be of one task, got {sorted(names)}")
    task = load(names.pop())
    known = {prompt.text for prompt in task.train}
    train: dict[str, Prompt] = {}
    for place, row in enumerate(rows):
        texts = [wanted(row, name, place, file, str) for name in ("problem", "candidate")]
        critique = wanted(row, "critique", place, file, str)
        if texts[0] not in known:
            raise ValueError(
                f"critiques: problems of {path} must be train prompts of {task.name!r}, got"
                f" {texts[0][:80]!r}"
            )
        made = critique_prompts(texts[0], [texts[1]], [_outcome(row, place, file)], [critique])
        if not made:
            raise ValueError(
                f"critiques: the conclusion of row {place + 1} of {path} must agree with its"
                f" outcome {row['outcome']}, got {critique[-80:]!r}"
            )
        train.setdefault(made[0].text, made[0])

    def verify(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        grades: list[Grade] = [Grade(None)] * len(prompts)
        written = [prompt.kind == KIND for prompt in prompts]
        for kind, grade in ((True, grade_critiques), (False, task.verify)):
            places = [place for place, own in enumerate(written) if own == kind]
            if places:
                own = grade([prompts[p] for p in places], [responses[p] for p in places])
                for place, one in zip(places, own, strict=True):
                    grades[place] = one
        return grades

    return replace(
        task,
        name=f"critiques:{path}",
        train=tuple(train.values()),
        verify=verify,
        response_tokens=response_tokens,
        mixture={},
        base_model=None,
        rewards=(),
        answers=False,
        score_steps=None,
        derived=(),
        notes=(),
    )


def _outcome(row: dict[str, Any], place: int, file: Path) -> float:
    outcome = row.get("outcome")
    if isinstance(outcome, bool) or outcome not in (0, 1):
        raise ValueError(
            f"critiques: outcome of row {place + 1} of {file} must be 0 or 1, got {outcome!r}"
        )
    return float(outcome)
