"""Hitori: instance {"task", "grid"} of numbers. Every solution counts."""

from collections.abc import Sequence
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import (
    Cell,
    Puzzle,
    beside,
    connected,
    inside,
    latin_square,
)
from rlvr_jax.verifiers.puzzles.notation import ask, read_cells, show_cells, show_grid

__all__ = ["LEVELS", "check", "generate"]

# Side and shaded cells of the planted solution.
LEVELS = ((4, 4), (5, 6), (6, 9))

RULES = (
    "Shade cells of this board, so that no number is more than once among the cells of a row or of"
    " a column that are not shaded, no two shaded cells share a side, and all cells that are not"
    " shaded are connected over their sides."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the rest has no number twice in a line and is connected, and no two shaded touch."""
    cells, grid = read_cells(answer), gold["grid"]
    rows, columns = len(grid), len(grid[0])
    if cells is None or not inside(cells, rows, columns):
        return False
    shaded = set(cells)
    lines = [[(r, c) for c in range(columns)] for r in range(rows)]
    lines += [[(r, c) for r in range(rows)] for c in range(columns)]
    left = {cell for line in lines for cell in line} - shaded
    return (
        all(_distinct([grid[r][c] for r, c in line if (r, c) in left]) for line in lines)
        and not any(shaded.intersection(beside(cell, rows, columns)) for cell in shaded)
        and connected(left, rows, columns)
    )


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on: a Latin square, its shaded cells made repeats of others."""
    side, number = LEVELS[level - 1]
    cells = {(r, c) for r in range(side) for c in range(side)}
    shaded: set[Cell] = set()
    for cell in random.sample(sorted(cells), len(cells)):
        near = shaded.intersection(beside(cell, side, side))
        if len(shaded) < number and not near and connected(cells - shaded - {cell}, side, side):
            shaded.add(cell)
    grid = latin_square(random, side)
    for row, column in sorted(shaded):
        line = [(row, c) for c in range(side)] + [(r, column) for r in range(side)]
        r, c = random.choice([cell for cell in line if cell not in shaded])
        grid[row][column] = grid[r][c]
    return Puzzle(
        ask(RULES, show_grid(grid), "the shaded cells as (row, column), …, both counted from 0"),
        {"task": "hitori", "grid": grid},
        show_cells(shaded),
    )


def _distinct(numbers: Sequence[int]) -> bool:
    return len(set(numbers)) == len(numbers)
