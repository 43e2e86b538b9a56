"""The equations of a brackets response, each correct or incorrect by itself.

    ( 3 + 9 = 12 ) - 4 = 9 ; 3 * ( 9 - 4 = 5 ) = 15
    1                  0                 1      1

An equation is correct if its two operands have the value after `=`; a pair of brackets has the
value that the response states. An equation of another form is incorrect.
"""

import re

from rlvr_jax.tasks.base import Prompt, StepScore

__all__ = ["equation_scores"]

OPERATORS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def equation_scores(prompt: Prompt, text: str) -> list[StepScore]:
    """One step for each `=` of a response, with score 1 or 0; it ends with the number after it.

    Args:
      prompt: not read: an equation may be correct without answering the prompt.
    """
    del prompt
    words = [(found[0], found.end()) for found in re.finditer(r"\S+", text)]
    steps: list[StepScore] = []
    # Open brackets, from outside; each is its content so far.
    stack: list[list[str]] = [[]]
    place = 0
    while place < len(words):
        word, end = words[place]
        place += 1
        if word == ";":
            stack = [[]]
        elif word == "(":
            stack.append([])
        elif word == ")":
            inner = stack.pop()
            stack = stack or [[]]
            # An equation with a bracket of anything but one number is incorrect.
            stack[-1].append(inner[0] if len(inner) == 1 else "")
        elif word == "=":
            result, end = words[place] if place < len(words) else ("", end)
            place += result.isdigit()
            steps.append(
                StepScore(end, float(result.isdigit() and _value(stack[-1]) == int(result)))
            )
            stack[-1] = [result]
        else:
            stack[-1].append(word)
    return steps


def _value(words: list[str]) -> int | None:
    """The value of number, operator, number; None of anything else."""
    if len(words) != 3 or words[1] not in OPERATORS:
        return None
    if not (words[0].isdigit() and words[2].isdigit()):
        return None
    return OPERATORS[words[1]](int(words[0]), int(words[2]))
