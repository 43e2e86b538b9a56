"""Minesweeper: instance {"task", "grid", "mines"}, rows of digits and . for covered cells.

Every placement counts that fits the digits and has as many mines as are stated.
"""

import itertools
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, around, puzzle
from rlvr_jax.verifiers.puzzles.notation import CELLS, read_cells_on, show_cells

# Side, mines, and cells without a mine that stay covered.
LEVELS = ((4, 3, 3), (5, 5, 6), (6, 8, 9))

_RULES = (
    "This board has {mines} mines, all under covered cells (.). A digit says how many of the up to"
    " eight cells around it have a mine. Find a placement of the mines that fits all digits."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the mines are under covered cells, as many as stated, and every digit counts them."""
    grid = gold["grid"]
    mines, rows, columns = read_cells_on(answer, grid), len(grid), len(grid[0])
    if mines is None or len(mines) != gold["mines"]:
        return False
    return all(grid[r][c] == "." for r, c in mines) and all(
        grid[r][c] in (".", str(len(mines.intersection(around((r, c))))))
        for r in range(rows)
        for c in range(columns)
    )


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side, number, covered = LEVELS[level - 1]
    cells = random.sample([*itertools.product(range(side), repeat=2)], side * side)
    mines = set(cells[:number])
    hidden = set(cells[: number + covered])
    grid = [
        "".join(
            "." if (r, c) in hidden else str(len(mines.intersection(around((r, c)))))
            for c in range(side)
        )
        for r in range(side)
    ]
    rules, board, form = _RULES.format(mines=number), "\n".join(grid), f"the mines {CELLS}"
    return puzzle("minesweeper", rules, board, form, show_cells(mines), grid=grid, mines=number)
