r"""Critiques: a verdict \conclusion{True} or \conclusion{False} against the result of the tests.

The text of the critique is not graded. If half of the solutions are correct, a constant verdict
has a mean reward of one half.

Source: https://github.com/TIGER-AI-Lab/Critique-Coder, whose rule is `released`: any T in the last
conclusion counts as true ("NOT SURE" does), and true in lower case does not.
"""

import re

from rlvr_jax.verifiers.answers import after_thinking
from rlvr_jax.verifiers.nesting import closing

_COMMAND = r"\conclusion{"
_MACRO = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*(?=\{)")
_ENDS = " \t\r\n*."


def extract(response: str) -> str | None:
    """Returns "true" or "false"; None if the last conclusion after the thinking is neither."""
    text = after_thinking(response)
    start = text.rfind(_COMMAND)
    end = closing(text, start + len(_COMMAND) - 1) if start >= 0 else -1
    if end < 0:
        return None
    verdict = text[start + len(_COMMAND) : end].strip(_ENDS)
    macro = _MACRO.match(verdict)
    if macro and closing(verdict, macro.end()) == len(verdict) - 1:
        verdict = verdict[macro.end() + 1 : -1].strip(_ENDS)
    verdict = verdict.lower()
    return verdict if verdict in ("true", "false") else None


def check(answer: str, gold: bool) -> float:
    """1 if the verdict equals the label (whether the solution passes), else 0."""
    return float((answer == "true") == gold)


def released(response: str, label: bool) -> float:
    """The published reward: a T, or else an F, in the last \\conclusion{…} of a line."""
    verdict = None
    for line in response.split("\n"):
        start = line.find(_COMMAND)
        while start >= 0 and (end := line.find("}", start)) >= 0:
            verdict = line[start + len(_COMMAND) : end]
            start = line.find(_COMMAND, end)
    if verdict is None or not {"T", "F"} & set(verdict):
        return 0.0
    return float(("T" in verdict) == label)
