"""Hitori: instance {"task", "grid"} of numbers. Every solution counts."""

import itertools
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, beside, connected, latin_square, puzzle
from rlvr_jax.verifiers.puzzles.notation import CELLS, read_cells_on, show_cells, show_grid

# Side and shaded cells of the planted solution.
LEVELS = ((4, 4), (5, 6), (6, 9))

_RULES = (
    "Shade cells of this board, so that no number is more than once among the cells of a row or of"
    " a column that are not shaded, no two shaded cells share a side, and all cells that are not"
    " shaded are connected over their sides."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the rest is connected, no line repeats a number, and no two shaded cells touch."""
    grid = gold["grid"]
    shaded, rows, columns = read_cells_on(answer, grid), len(grid), len(grid[0])
    if shaded is None:
        return False
    lines = [[(r, c) for c in range(columns)] for r in range(rows)]
    lines += [[(r, c) for r in range(rows)] for c in range(columns)]
    left = {cell for line in lines for cell in line} - shaded
    seen = [[grid[r][c] for r, c in line if (r, c) in left] for line in lines]
    return (
        all(len(set(numbers)) == len(numbers) for numbers in seen)
        and not any(shaded.intersection(beside(cell)) for cell in shaded)
        and connected(left)
    )


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on: a Latin square whose shaded cells repeat other numbers."""
    side, number = LEVELS[level - 1]
    cells = set(itertools.product(range(side), repeat=2))
    shaded: set[Cell] = set()
    for cell in random.sample(sorted(cells), len(cells)):
        near = shaded.intersection(beside(cell))
        if len(shaded) < number and not near and connected(cells - shaded - {cell}):
            shaded.add(cell)
    grid = latin_square(random, side)
    for row, column in sorted(shaded):
        line = [(row, c) for c in range(side)] + [(r, column) for r in range(side)]
        r, c = random.choice([cell for cell in line if cell not in shaded])
        grid[row][column] = grid[r][c]
    board, found = show_grid(grid), show_cells(shaded)
    return puzzle("hitori", _RULES, board, f"the shaded cells {CELLS}", found, grid=grid)
