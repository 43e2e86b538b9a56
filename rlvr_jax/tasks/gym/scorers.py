"""Our scorers for reasoning-gym data sets whose scorers execute text or are too lenient.

Each takes an answer without white space around it and the item as JSON, and decides whether the
answer is correct. Nothing is executed: a grammar reads expressions, boards are read row by row.
They run like the package's scorers, in a worker that is killed at a time limit.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from rlvr_jax.verifiers.maths.algebra import equal_expressions
from rlvr_jax.verifiers.maths.formulas.identity import worked_out
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import free_symbols, parts
from rlvr_jax.verifiers.maths.notation import MAX_CHARACTERS, normalise

__all__ = ["SCORERS"]

Item = Mapping[str, Any]

_ARITHMETIC = re.compile(r"[\d+\-*/() ]+", re.ASCII)
# Products need their sign; powers do not occur.
_FORBIDDEN = re.compile(r"\*\s*\*|/\s*/|\d\s*\(|\)\s*[\d(]")
_PROBABILITY = re.compile(
    r"\d{1,40}(?:\.\d{1,40}(?:e-\d\d?)?|/\d{1,40})?|\.\d{1,40}", re.ASCII | re.IGNORECASE
)
_ALGEBRA = re.compile(r"[A-Za-z0-9+\-*/^(). ]+", re.ASCII)
_TERM = re.compile(
    r"([+-]?)\s*(\d+)?((?:\s*\*?\s*[A-Za-z](?:\s*(?:\*\*|\^)\s*\d+)?)*)\s*", re.ASCII
)
_POWER = re.compile(r"([A-Za-z])(?:\s*(?:\*\*|\^)\s*(\d+))?", re.ASCII)
# Names that differ in sympy.
_RENAMED = (
    (r"\blog\(", "ln("),
    (r"\ba(sin|cos|tan)\(", r"arc\1("),
    (r"\bAbs\(", "abs("),
    (r"\bE\b", "e"),
)


def _expression(answer: str, item: Item) -> bool:
    """An expression of + - * / that uses each number once and has the target's value; 24 if the
    item has no target."""
    numbers, target = item["metadata"]["numbers"], item["metadata"].get("target", 24)
    if not _ARITHMETIC.fullmatch(answer) or _FORBIDDEN.search(answer):
        return False
    if Counter(map(int, re.findall(r"\d{1,9}", answer))) != Counter(numbers):
        return False
    node = read_formula(" ".join(answer.split()))
    return node is not None and worked_out(node) == target


def _n_queens(answer: str, item: Item) -> bool:
    """All queens of the puzzle, as many as rows, none of which attacks another."""
    puzzle = item["metadata"]["puzzle"]
    board = [line.split() for line in answer.splitlines()]
    if [len(row) for row in board] != [len(row) for row in puzzle]:
        return False
    cells = [(r, c) for r, row in enumerate(board) for c in range(len(row))]
    if any(board[r][c] not in ("_", "Q") for r, c in cells):
        return False
    if any(puzzle[r][c] == "Q" != board[r][c] for r, c in cells):
        return False
    queens = [(r, c) for r, c in cells if board[r][c] == "Q"]
    lines = [{r for r, _ in queens}, {c for _, c in queens}]
    lines += [{r + c for r, c in queens}, {r - c for r, c in queens}]
    return all(len(line) == len(queens) == len(board) for line in lines)


def _coin_flip(answer: str, item: Item) -> bool:
    """The probability exactly, as a fraction or as the decimal that is the gold."""
    exact = item["metadata"]["rational"]
    if not _PROBABILITY.fullmatch(answer):
        return False
    try:
        value = Fraction(answer)
    except ZeroDivisionError:
        return False
    return value in (Fraction(exact["numerator"], exact["denominator"]), Fraction(item["answer"]))


def _polynomial(answer: str, item: Item) -> bool:
    """The expanded polynomial, with every power once."""
    found = _coefficients(answer)
    return found is not None and found == _coefficients(item["answer"])


def _coefficients(text: str) -> dict[tuple[tuple[str, int], ...], int] | None:
    """Coefficients by powers; None if it is not a sum of different monomials."""
    found: dict[tuple[tuple[str, int], ...], int] = {}
    position, text = 0, text.strip()
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None or match.end() == position or (position and not match[1]):
            return None
        if not (match[2] or match[3]) or len(match[2] or "") > MAX_CHARACTERS:
            return None
        if not match[2] and match[3].lstrip().startswith("*"):
            return None
        powers: Counter[str] = Counter()
        for name, exponent in _POWER.findall(match[3]):
            powers[name] += int(exponent[:6] or 1)
        key = tuple(sorted((name, power) for name, power in powers.items() if power))
        if key in found:
            return None
        found[key] = int(match[2] or 1) * (-1 if match[1] == "-" else 1)
        position = match.end()
    return {key: value for key, value in found.items() if value} if text else None


def _antiderivative(answer: str, item: Item) -> bool:
    """A function whose derivative is the integrand; a constant may be called C."""
    variable = item["metadata"]["variable"]
    if not _ALGEBRA.fullmatch(answer) or len(answer) > MAX_CHARACTERS:
        return False
    found, integrand = (_as_tex(text) for text in (answer, item["metadata"]["integrand"]))
    node = read_formula(found)
    if node is None or free_symbols(node) - {variable, "C"}:
        return False
    if any(part.kind in ("word", "apply") for part in parts(node)):
        return False
    return equal_expressions([integrand, rf"\frac{{d}}{{d{variable}}} ({found})"])


def _as_tex(text: str) -> str:
    for pattern, name in _RENAMED:
        text = re.sub(pattern, name, text)
    return normalise(text)


SCORERS: Mapping[str, Callable[[str, Item], bool]] = {
    "coin_flip": _coin_flip,
    "countdown": _expression,
    "intermediate_integration": _antiderivative,
    "n_queens": _n_queens,
    "polynomial_multiplication": _polynomial,
    "puzzle24": _expression,
    "simple_integration": _antiderivative,
}
