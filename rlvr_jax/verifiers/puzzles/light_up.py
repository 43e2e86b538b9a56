"""Light up: instance {"task", "grid"}, . is free, # and digits are walls. Every solution counts."""

import itertools
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, beside, puzzle
from rlvr_jax.verifiers.puzzles.notation import CELLS, STEPS, moved, read_cells_on, show_cells

# Side, walls, and the number of walls that show their number.
LEVELS = ((4, 4, 2), (5, 6, 4), (6, 9, 6))

_RULES = (
    "Place lamps on free cells (.) of this board. A lamp lights its own cell and all cells in its"
    " row and column up to the next wall (# or a digit) or the edge. Every free cell must be lit,"
    " no lamp may light another lamp, and a digit says how many of the cells that share a side with"
    " it have a lamp."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether lamps are on free cells, light no other lamp, light all cells, and fit the digits."""
    grid = gold["grid"]
    lamps, rows, columns = read_cells_on(answer, grid), len(grid), len(grid[0])
    if lamps is None:
        return False
    lit: set[Cell] = set()
    for lamp in lamps:
        seen = _seen(grid, lamp)
        if grid[lamp[0]][lamp[1]] != "." or lamps & seen:
            return False
        lit |= seen | {lamp}
    board = [((r, c), grid[r][c]) for r in range(rows) for c in range(columns)]
    return all(
        cell in lit if mark == "." else mark == "#" or len(lamps & set(beside(cell))) == int(mark)
        for cell, mark in board
    )


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side, num_walls, num_digits = LEVELS[level - 1]
    cells = list(itertools.product(range(side), repeat=2))
    walls = random.sample(cells, num_walls)
    marks = {cell: "#" if cell in walls else "." for cell in cells}
    grid = [[marks[r, c] for c in range(side)] for r in range(side)]
    lamps: set[Cell] = set()
    lit: set[Cell] = set()
    for cell in random.sample(cells, len(cells)):  # a lamp wherever it is dark lights everything
        if cell not in lit and cell not in walls:
            lamps.add(cell)
            lit |= _seen(grid, cell) | {cell}
    for row, column in walls[:num_digits]:
        grid[row][column] = str(len(lamps & set(beside((row, column)))))
    rows = ["".join(row) for row in grid]
    board, found = "\n".join(rows), show_cells(lamps)
    return puzzle("light_up", _RULES, board, f"the lamps {CELLS}", found, grid=rows)


def _seen(grid: list[Any], cell: Cell) -> set[Cell]:
    """The free cells that a lamp on a cell lights, its own aside."""
    seen = set()
    for way in STEPS:
        place = cell
        while (place := moved(grid, place, way)) and grid[place[0]][place[1]] == ".":
            seen.add(place)
    return seen
