"""Magic squares: instance {"task", "grid"}, 0 is an open cell. Every solution counts."""

from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import GRID, read_filled, show_grid

# Side and the smallest and largest number of open cells.
LEVELS = ((3, 3, 6), (4, 5, 7), (4, 8, 10))

_LO_SHU = [[2, 7, 6], [9, 5, 1], [4, 3, 8]]
# A Latin square that is orthogonal to its transpose, with each number once in both diagonals:
# 4 · a + b + 1 of the two is magic under any names of the four digits of each.
_ORTHOGONAL = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]]


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether 1 .. n² appear once each, sums are equal, and given cells are unchanged."""
    grid = read_filled(answer, gold["grid"], blank=0)
    if grid is None:
        return False
    side = len(grid)
    flat = [cell for row in grid for cell in row]
    diagonals = [flat[:: side + 1], flat[side - 1 : -1 : side - 1]]
    sums = {sum(line) for line in [*grid, *zip(*grid, strict=True), *diagonals]}
    return len(sums) == 1 and sorted(flat) == list(range(1, side * side + 1))


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side, least, most = LEVELS[level - 1]
    solution = _three(random) if side == 3 else _four(random)
    grid = [list(row) for row in solution]
    for cell in random.sample(range(side * side), random.randint(least, most)):
        grid[cell // side][cell % side] = 0
    rules = (
        f"Fill the open cells (.), so that the square has each of the numbers 1 to {side * side}"
        " once and all rows, all columns and both diagonals have the same sum."
    )
    board, solved = show_grid(grid, blank=0), show_grid(solution)
    return puzzle("magic_square", rules, board, f"the whole square, {GRID}", solved, grid=grid)


def _three(random: Random) -> list[list[int]]:
    """One of the eight squares of side 3: the known one turned and mirrored."""
    down, right = random.choice((1, -1)), random.choice((1, -1))
    square = [row[::right] for row in _LO_SHU[::down]]
    return square if random.random() < 0.5 else [list(row) for row in zip(*square, strict=True)]


def _four(random: Random) -> list[list[int]]:
    """One of the 576 squares of the orthogonal pair."""
    high, low = random.sample(range(4), 4), random.sample(range(4), 4)
    return [
        [4 * high[_ORTHOGONAL[r][c]] + low[_ORTHOGONAL[c][r]] + 1 for c in range(4)]
        for r in range(4)
    ]
