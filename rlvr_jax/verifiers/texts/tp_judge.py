"""A prover as judge of reasoning steps: VERIFIED, FALSE or ERROR (undecided).

The prover here is exact arithmetic: `check` decides the relations that `relations` finds in a step.
`autoformalise` is the loop around any prover, with repairs of texts that do not run. `faithful`
detects a formaliser that states something else. The reward is 1 if all steps hold and 0 if one does
not. An ERROR is ungraded: it must leave the group and not count as 0.

Source: Theorem Prover as a Judge for Synthetic Data Generation (RLTPF); the arithmetic is ours.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from rlvr_jax.verifiers.answers import after_thinking
from rlvr_jax.verifiers.exact import DECIMALS
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.relations import decide

Verdict = Literal["VERIFIED", "FALSE", "ERROR"]

_REPAIRS = 5

_NUMBER = re.compile(DECIMALS)
_INEQUALITY = re.compile("[<>≤≥≠]|!=")


class Judgement(NamedTuple):
    """The end of a loop of formalisations: last verdict, number of checks, number of repairs."""

    verdict: Verdict
    checks: int
    repairs: int


def check_step(step: str) -> Verdict:
    """Decides all relations of a step; ERROR if one of them is, or if there is none."""
    found = decide(step)
    if not found or None in found:
        return "ERROR"
    return "VERIFIED" if all(found) else "FALSE"


def judge(steps: Sequence[str]) -> Verdict:
    """The verdict on a solution: FALSE if a step is, else ERROR if one is or there is no step."""
    found = [check_step(step) for step in steps]
    if "FALSE" in found:
        return "FALSE"
    return "ERROR" if not found or "ERROR" in found else "VERIFIED"


def check(answer: str | Sequence[str], _: object = None) -> float | None:
    """1, 0 or ungraded: the grade of a step, or of the steps of a solution."""
    verdict = judge([answer] if isinstance(answer, str) else answer)
    return {"VERIFIED": 1.0, "FALSE": 0.0}.get(verdict)


def check_lines(response: str, _: object = None) -> Grade:
    """`check` of the lines after the thinking, each a step; the stage is the verdict.

    Metrics: steps (steps of a response), false_steps (steps that do not hold).
    """
    steps = [line for line in after_thinking(response).splitlines() if line.strip()]
    info = {"steps": len(steps), "false_steps": sum(check_step(s) == "FALSE" for s in steps)}
    return Grade(check(steps), stage=judge(steps), info=info)


def autoformalise(
    step: str,
    formalise: Callable[[str], str],
    prove: Callable[[str], tuple[Verdict, str]],
    repair: Callable[[str, str, str], str],
    repairs: int = _REPAIRS,
) -> Judgement:
    """Formalises a step; while the formal text does not run, it is repaired.

    A text that runs and is FALSE is never repaired.

    Args:
      step: text of the step.
      formalise: (step) -> formal text.
      prove: (formal text) -> verdict and message.
      repair: (step, formal text, message) -> formal text.
      repairs: largest number of repairs after the first attempt.
    Raises:
      ValueError: repairs is negative.
    """
    if repairs < 0:
        raise ValueError(f"autoformalise: repairs must be at least 0, got {repairs}")
    formal = formalise(step)
    for repaired in range(repairs + 1):
        verdict, message = prove(formal)
        if verdict != "ERROR" or repaired == repairs:
            break
        formal = repair(step, formal, message)
    return Judgement(verdict, repaired + 1, repaired)


def faithful(step: str, formal: str, prove: Callable[[str], tuple[Verdict, str]]) -> bool:
    """Whether a formal text is about a step; if not, the step must count as ERROR.

    It must have the step's numbers, and an equality must become FALSE when 1 is added to its right
    side.
    """
    if not set(_NUMBER.findall(step)) <= set(_NUMBER.findall(formal)):
        return False
    if _INEQUALITY.search(formal):
        return True
    left, equals, right = formal.rpartition("=")
    return bool(equals) and prove(f"{left}= ({right}) + 1")[0] == "FALSE"


def allocation(first: Verdict, second: Verdict) -> str:
    """The use of two solutions of one problem."""
    if "ERROR" in (first, second):
        return "excluded"
    if first == second:
        return "SFT, both" if first == "VERIFIED" else "dropped"
    return f"DPO, {'first' if first == 'VERIFIED' else 'second'} chosen"
