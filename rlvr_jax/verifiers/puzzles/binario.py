"""Binario: instance {"task", "grid"}, where null is an open cell. Every solution counts."""

import functools
import itertools
from collections.abc import Sequence
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import GRID, read_filled, show_grid

# Side and number of open cells, by level.
LEVELS = ((4, 8), (6, 18), (8, 36))

_RULES = (
    "Fill the open cells (.) with 0 and 1, so that every row and every column has as many 0 as 1"
    " and nowhere three equal numbers next to each other. Two rows or columns may be equal."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether lines are balanced, without three in a row, and given cells are unchanged."""
    grid = read_filled(answer, gold["grid"])
    return grid is not None and all(map(_legal, [*grid, *zip(*grid, strict=True)]))


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side, num_open = LEVELS[level - 1]
    solution = _filled(random, side, [])
    grid: list[list[int | None]] = [list(row) for row in solution]
    for cell in random.sample(range(side * side), num_open):
        grid[cell // side][cell % side] = None
    board, solved = show_grid(grid), show_grid(solution)
    return puzzle("binario", _RULES, board, f"the whole grid, {GRID}", solved, grid=grid)


def _legal(line: Sequence[int]) -> bool:
    return 2 * sum(line) == len(line) and set(line) <= {0, 1} and not _three(line)


def _three(line: Sequence[int]) -> bool:
    return any(a == b == c for a, b, c in zip(line, line[1:], line[2:], strict=False))


@functools.cache
def _lines(side: int) -> tuple[tuple[int, ...], ...]:
    """All valid lines."""
    return tuple(filter(_legal, itertools.product((0, 1), repeat=side)))


def _filled(random: Random, side: int, rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Valid rows below the given ones, by backtracking; empty if there are none."""
    if len(rows) == side:
        return rows
    lines = list(_lines(side))
    random.shuffle(lines)
    for line in lines:
        columns = list(zip(*rows, line, strict=True))
        fits = all(max(c.count(0), c.count(1)) <= side // 2 and not _three(c[-3:]) for c in columns)
        if fits and (found := _filled(random, side, [*rows, line])):
            return found
    return []
