"""Kakurasu: instance {"task", "rows", "cols"}, the sums. Every solution counts."""

from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import read_filled, show_grid, show_lines

# Side of the board.
LEVELS = (4, 5, 6)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the weights of the filled cells add up to the sums of all rows and columns."""
    rows, columns = gold["rows"], gold["cols"]
    grid = read_filled(answer, [[None] * len(columns)] * len(rows))
    if grid is None:
        return False
    filled = all(cell in (0, 1) for row in grid for cell in row)
    return filled and _sums(grid) == (list(rows), list(columns))


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side = LEVELS[level - 1]
    grid = [[0] * side for _ in range(side)]
    for cell in random.sample(range(side * side), random.randint(side, side * side - side)):
        grid[cell // side][cell % side] = 1
    rows, cols = _sums(grid)
    rules = (
        f"Fill some cells of a board of {side} × {side}. A filled cell in column 1, 2, 3, … counts"
        " 1, 2, 3, … for its row, and in row 1, 2, 3, … it counts 1, 2, 3, … for its column. The"
        " rows, from the top, and the columns, from the left, must have these sums:"
    )
    board = show_lines({"rows": rows, "columns": cols})
    form = "the board, a row a line, 1 for a filled cell and 0 for another, blanks between cells"
    return puzzle("kakurasu", rules, board, form, show_grid(grid), rows=rows, cols=cols)


def _sums(grid: list[list[int]]) -> tuple[list[int], list[int]]:
    """The sums of the rows and of the columns."""
    rows, columns = (
        [sum(weight * cell for weight, cell in enumerate(line, 1)) for line in lines]
        for lines in (grid, zip(*grid, strict=True))
    )
    return rows, columns
