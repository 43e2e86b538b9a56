"""Countdown: an expression that uses each of some numbers once and has a given value.

Gold: {"numbers": […], "target": n}. Grammar: integers, + - * / (also × · ÷ −) and brackets. Signs,
powers, decimals and concatenated digits are not allowed. Values are exact fractions.

Source: https://github.com/Jiayi-Pan/TinyZero for the task. Its scorer evaluates the text with
Python and rewards any readable text with 0.1; here `parses` is not part of the grade.
"""

from random import Random
from typing import Any, NamedTuple

from rlvr_jax.verifiers.answers import in_tag
from rlvr_jax.verifiers.exact import INTEGERS, evaluate, plain_signs, tokens
from rlvr_jax.verifiers.grade import Grade

MAX_CHARACTERS = 200
_MAX_DEPTH = 20
# Of results on the way to the target of a generated puzzle.
_MAX_VALUE = 10**6

extract = in_tag


class Instance(NamedTuple):
    """Numbers, the value to reach, and an expression that does."""

    numbers: list[int]
    target: int
    solution: str


def check(answer: str, gold: dict[str, Any]) -> Grade:
    """1 if the expression has the target's value and uses the numbers; info: whether it parses.

    "= target" at the end of the answer is ignored.

    Metrics: parses (1 for an expression that can be read).
    """
    words = value = None
    if len(answer) <= MAX_CHARACTERS:
        expression, equals, end = plain_signs(answer).rpartition("=")
        claimed = not equals or end.strip() == str(gold["target"])
        words = tokens(expression if equals else end, INTEGERS) if claimed else None
    if words is not None and "^" not in words:
        value = evaluate(words, depth=_MAX_DEPTH)
    used = sorted(int(word) for word in words or () if word[0].isdecimal())
    right = value is not None and value == gold["target"] and used == sorted(gold["numbers"])
    return Grade(
        float(right), answer=answer, stage="value", info={"parses": float(value is not None)}
    )


def generate(random: Random, count: int, max_value: int, max_target: int) -> Instance:
    """Numbers that reach the target: two at a time are combined until one is left.

    Results are whole and not negative, as in the game. Numbers are from 1 to `max_value`.

    Args:
      random: source of the choices.
      count: of the numbers.
      max_value: largest number.
      max_target: largest target.
    """
    while True:
        numbers = [random.randint(1, max_value) for _ in range(count)]
        parts = [(number, str(number)) for number in numbers]
        while len(parts) > 1:
            random.shuffle(parts)
            (a, left), (b, right) = parts.pop(), parts.pop()
            results = {"+": a + b}
            if a * b <= _MAX_VALUE:
                results["*"] = a * b
            if a >= b:
                results["-"] = a - b
            if b and a % b == 0:
                results["/"] = a // b
            sign = random.choice(sorted(results))
            parts.append((results[sign], f"({left} {sign} {right})"))
        target, solution = parts[0]
        if 1 <= target <= max_target:
            return Instance(numbers, target, solution[1:-1])
