r"""Slant: instance {"task", "clues"}, numbers at the corners of the cells, null is not a clue.

Every solution counts.
"""

from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import GRID, fits, show_grid

# Side of the board and number of corners with a clue.
LEVELS = ((3, 12), (4, 18), (5, 26))

_RULES = (
    "Draw a diagonal, / or \\, in each of the {side} × {side} cells of a board. The numbers stand"
    " at the corners of the cells, {corners} rows of them, and say how many diagonals end there; a"
    " dot is no clue. The diagonals must nowhere close a loop."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the diagonals fit all clues and close no loop."""
    clues = gold["clues"]
    rows, columns = len(clues) - 1, len(clues[0]) - 1
    grid = ["".join(line.split()) for line in answer.strip().split("\n")]
    if list(map(len, grid)) != [columns] * rows or set("".join(grid)) - set("/\\"):
        return False
    roots: dict[Cell, Cell] = {}
    counts = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row, line in enumerate(grid):
        for column, mark in enumerate(line):
            ends = _ends(row, column, mark)
            if not _join(roots, *ends):
                return False
            for r, c in ends:
                counts[r][c] += 1
    return fits(counts, clues)


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side, shown = LEVELS[level - 1]
    roots: dict[Cell, Cell] = {}
    grid = [[""] * side for _ in range(side)]
    clues: list[list[int | None]] = [[0] * (side + 1) for _ in range(side + 1)]
    for cell in random.sample(range(side * side), side * side):
        row, column = divmod(cell, side)
        # Where one diagonal closes a loop, it separates the corners that the other would connect.
        for mark in random.sample("/\\", 2):
            if _join(roots, *_ends(row, column, mark)):
                grid[row][column] = mark
                break
        for r, c in _ends(row, column, grid[row][column]):
            clues[r][c] += 1
    corners = side + 1
    for corner in random.sample(range(corners * corners), corners * corners - shown):
        clues[corner // corners][corner % corners] = None
    rules, form = _RULES.format(side=side, corners=corners), f"the board, {GRID}"
    return puzzle("slant", rules, show_grid(clues), form, show_grid(grid), clues=clues)


def _ends(row: int, column: int, mark: str) -> tuple[Cell, Cell]:
    """The corners that the diagonal of a cell connects."""
    if mark == "/":
        return (row, column + 1), (row + 1, column)
    return (row, column), (row + 1, column + 1)


def _join(roots: dict[Cell, Cell], first: Cell, second: Cell) -> bool:
    """Connects two corners in a forest; False, without a change, if that closes a loop."""
    ends = []
    for corner in (first, second):
        while corner in roots:
            corner = roots[corner]
        ends.append(corner)
    if ends[0] == ends[1]:
        return False
    roots[ends[0]] = ends[1]
    return True
