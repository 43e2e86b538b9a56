"""Worked solutions of reasoning-gym questions, from the parts of a question.

    steps = worked("chain_sum", item["metadata"])     ["4 - 1 = 3\n", "3 - 7 = -4\n"]

The data set's answer is not used here: the caller must compare both.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def worked(name: str, made_of: Mapping[str, Any]) -> list[str]:
    """The steps of a solution, each a line with its end.

    Args:
      name: name of a data set, one of `WORKED`.
      made_of: the metadata of a question.
    """
    return [f"{line}\n" for line in WORKED[name](made_of)]


def _sum(made_of, number: Callable[[str], Any] = int) -> Iterator[str]:
    """Each sign with its term, from the left."""
    first, *rest = made_of["expression"].split()
    total = number(first)
    for sign, word in zip(rest[::2], rest[1::2], strict=True):
        before, total = total, _SIGNS[sign](total, number(word))
        yield f"{before} {sign} {word} = {total}"


def _product(made_of) -> Iterator[str]:
    """The sum of products with each digit of the next factor, from the left, last digit first."""
    first, *rest = made_of["expression"].split()
    total = int(first)
    for word in rest[1::2]:
        parts = []
        for place, digit in enumerate(reversed(word.lstrip("-"))):
            part = int(digit) * 10**place
            if part:
                parts.append(total * part)
                yield f"{total} * {part} = {parts[-1]}"
        for before, part in zip(itertools.accumulate(parts), parts[1:], strict=False):
            yield f"{before} + {part} = {before + part}"
        total *= int(word)
        if int(word) <= 0:
            yield f"with {word}: {total}"


def _euclid(numbers: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Lines of Euclid's algorithm, number after number, each with the remainder so far."""
    divisor = numbers[0]
    for number in numbers[1:]:
        a, b = max(divisor, number), min(divisor, number)
        while b:
            times, rest = divmod(a, b)
            yield f"{a} = {times} * {b} + {rest}", b
            a, b = b, rest
        divisor = a


def _divisor(made_of) -> Iterator[str]:
    for line, _ in _euclid(made_of["numbers"]):
        yield line


def _multiple(made_of) -> Iterator[str]:
    """The product of the first two over their greatest common divisor, then with the next one."""
    total = made_of["numbers"][0]
    for number in made_of["numbers"][1:]:
        yield from _divisor({"numbers": [total, number]})
        divisor = math.gcd(total, number)
        before, total = total, total * number // divisor
        yield f"{before} * {number} / {divisor} = {total}"


def _factors(made_of) -> Iterator[str]:
    """Division by the smallest factor, repeatedly."""
    left, factor = made_of["number"], 2
    while left > 1:
        if factor * factor > left:
            factor = left
        if left % factor:
            factor += 1
            continue
        yield f"{left} / {factor} = {left // factor}"
        left //= factor


def _backward(made_of) -> Iterator[str]:
    """The letters one by one, then in reverse order."""
    yield " ".join(made_of["word"])
    yield " ".join(reversed(made_of["word"]))


def _letters(made_of) -> Iterator[str]:
    """The number of the letter's occurrences in each word, and the total so far."""
    total = 0
    for word in made_of["span"]:
        count = word.lower().count(made_of["target_letter"])
        total += count
        yield f"{word}: {count}, {total}"


def _bits(made_of) -> Iterator[str]:
    """The number in base 2, in chunks of eight from the left, with the number of ones so far."""
    digits, total = f"{made_of['number']:b}", 0
    for start in range(0, len(digits), 8):
        piece = digits[start : start + 8]
        total += piece.count("1")
        yield f"{piece}: {piece.count('1')}, {total}"


def _sorted(made_of) -> Iterator[str]:
    """The next of the remaining numbers."""
    left, down = list(made_of["original_numbers"]), made_of["direction"] == "descending"
    while left:
        pick = (max if down else min)(left, key=float)
        yield f"{pick} of {', '.join(left)}"
        left.remove(pick)


WORKED: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "chain_sum": _sum,
    "decimal_chain_sum": lambda made_of: _sum(made_of, Decimal),
    "products": _product,
    "gcd": _divisor,
    "lcm": _multiple,
    "prime_factorization": _factors,
    "spell_backward": _backward,
    "letter_counting": _letters,
    "count_bits": _bits,
    "number_sorting": _sorted,
}
"""Data sets whose questions have worked solutions."""
