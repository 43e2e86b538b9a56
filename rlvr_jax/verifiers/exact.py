"""Exact arithmetic on a text: + - * / and brackets; signs and powers are optional.

Python's parser never reads the text. A stack replaces recursion, so deep nesting is cheap. No
number becomes larger than `MAX_BITS`, so towers of powers are refused.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

# Numbers of two grammars; a leading zero is a whole number, and no digit may follow it.
INTEGERS = r"0|[1-9][0-9]*"
DECIMALS = r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+"
# Bits of numerator and denominator of every intermediate result.
MAX_BITS = 20_000
_MAX_EXPONENT = 100

_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-"})
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "sign +": 3, "sign -": 3, "^": 4}


def plain_signs(text: str) -> str:
    """Writes × · ÷ − as * * / -."""
    return text.translate(_SIGNS)


def tokens(text: str, number: str) -> list[str] | None:
    """Numbers, operators and brackets of a text in order; None if the text has anything else.

    Args:
      number: pattern of a number, `INTEGERS` or `DECIMALS`.
    """
    pattern = re.compile(rf"\s*({number}|[-+*/^()])")
    text = text.rstrip()
    found, place = [], 0
    while place < len(text):
        match = pattern.match(text, place)
        if match is None:
            return None
        found.append(match[1])
        place = match.end()
    return found


def evaluate(
    words: Sequence[str], signs: bool = False, depth: int | None = None
) -> Fraction | None:
    """The value of an expression; None if it is not one or has no value (a division by zero).

    Operators of one rank are applied from the left, powers from the right. Exponents are integers
    of at most 100.
    of at most 100.

    Args:
      words: from `tokens`.
      signs: whether numbers and brackets may have a sign, which binds between * and ^.
      depth: largest number of open brackets; None: no limit.
    """
    values: list[Fraction] = []
    pending: list[str] = []
    complete = False  # whether an operand ends before this position
    num_open = 0

    def reduce(rank: int) -> bool:
        """Applies operators of at least this rank; False if one of them has no value."""
        while pending and pending[-1] != "(" and _BINDS[pending[-1]] >= rank:
            if not _apply(values, pending.pop()):
                return False
        return True

    for word in words:
        if word in "+-*/^":
            if complete:
                # A power postpones the power before it.
                if not reduce(_BINDS[word] + (word == "^")):
                    return None
                pending.append(word)
            elif signs and word in "+-" and not (pending and pending[-1].startswith("sign")):
                pending.append(f"sign {word}")
            else:
                return None
            complete = False
        elif word == ")":
            if not complete or not num_open or not reduce(0):
                return None
            pending.pop()
            num_open -= 1
        elif complete:
            return None
        elif word == "(":
            pending.append(word)
            num_open += 1
            if depth is not None and num_open > depth:
                return None
        else:
            values.append(Fraction(word))
            complete = True
    return values[0] if complete and not num_open and reduce(0) else None


def _apply(values: list[Fraction], operator: str) -> bool:
    """Replaces the operands at the end of `values` by the result; False without one."""
    right = values.pop()
    if operator.startswith("sign"):
        values.append(-right if operator == "sign -" else right)
        return True
    left = values.pop()
    if operator == "^":
        whole = right.denominator == 1 and abs(right) <= _MAX_EXPONENT
        if not whole or (not left and right < 0) or _bits(left) * abs(right) > MAX_BITS:
            return False
        result = left ** int(right)
    elif operator == "/":
        if not right:
            return False
        result = left / right
    else:
        result = {"+": left + right, "-": left - right, "*": left * right}[operator]
    values.append(result)
    return _bits(result) <= MAX_BITS


def _bits(number: Fraction) -> int:
    return max(number.numerator.bit_length(), number.denominator.bit_length())
