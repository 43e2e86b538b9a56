"""Sudoku of any box: instance {"task", "box": [height, width], "grid"}, 0 is an open cell.

Every puzzle has one solution, proved as it is made. A cell is opened only if its number can still
be inferred: no other number fits it, or the number fits no other cell of a row, column or box. So
each solution of the new puzzle is a solution of the previous one.
"""

import functools
import itertools
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import GRID, read_filled, show_grid

# Open cells of the easy, middle and hard puzzles of a box; few full grids allow many more.
LEVELS = {(2, 2): (6, 8, 10), (3, 3): (30, 38, 45)}

Box = tuple[int, int]


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether each number is once in every row, column and box, and given cells are unchanged."""
    grid = read_filled(answer, gold["grid"], blank=0)
    if grid is None:
        return False
    numbers = set(range(1, len(grid) + 1))
    flat = [x for row in grid for x in row]
    return all({flat[i] for i in unit} == numbers for unit in _units(tuple(gold["box"])))


def generate(random: Random, level: int, box: Box = (2, 2)) -> Puzzle:
    """A random puzzle of a level, counted from 1, with boxes of `box` cells."""
    cells = None
    while cells is None:
        solution = _filled(random, box)
        cells = _opened(random, solution, LEVELS[box][level - 1], box)
    side = box[0] * box[1]
    grid, solved = (
        [each[side * row : side * (row + 1)] for row in range(side)] for each in (cells, solution)
    )
    rules = (
        f"Fill the open cells (.) of this sudoku, so that every row, every column and every box of"
        f" {box[0]} × {box[1]} cells has each of the numbers 1 to {side} once. There is one"
        " solution."
    )
    board, form = show_grid(grid, blank=0), f"the whole grid, {GRID}"
    return puzzle("sudoku", rules, board, form, show_grid(solved), box=list(box), grid=grid)


@functools.cache
def _units(box: Box) -> tuple[tuple[int, ...], ...]:
    """The cells of each row, column and box; cell (r, c) is r · side + c."""
    height, width = box
    side = height * width
    rows = [tuple(range(r * side, (r + 1) * side)) for r in range(side)]
    columns = [tuple(range(c, side * side, side)) for c in range(side)]
    boxes = [
        tuple((top + r) * side + left + c for r in range(height) for c in range(width))
        for top in range(0, side, height)
        for left in range(0, side, width)
    ]
    return (*rows, *columns, *boxes)


@functools.cache
def _peers(box: Box) -> tuple[tuple[int, ...], ...]:
    """The other cells of the units of each cell."""
    cells = range((box[0] * box[1]) ** 2)
    units = [itertools.chain(*(unit for unit in _units(box) if cell in unit)) for cell in cells]
    return tuple(tuple({*found} - {cell}) for cell, found in zip(cells, units, strict=True))


def _opened(random: Random, solution: list[int], wanted: int, box: Box) -> list[int] | None:
    """The solution with `wanted` random cells opened; None if that is not possible."""
    cells = list(solution)
    for index in random.sample(range(len(cells)), len(cells)):
        number, cells[index] = cells[index], 0
        if not _forced(cells, index, number, box):
            cells[index] = number
        elif cells.count(0) == wanted:
            return cells
    return None


def _forced(cells: list[int], index: int, number: int, box: Box) -> bool:
    """Whether the other cells leave an open cell no other number, or a number no other cell."""
    peers = _peers(box)
    if len({cells[peer] for peer in peers[index]} - {0}) == len(_units(box)[0]) - 1:
        return True
    return any(
        all(cells[i] or number in [cells[peer] for peer in peers[i]] for i in unit if i != index)
        for unit in _units(box)
        if index in unit
    )


def _filled(random: Random, box: Box) -> list[int]:
    """A random full grid by backtracking, the cell with the fewest choices first."""
    peers = _peers(box)
    side = box[0] * box[1]
    choices = [set(range(1, side + 1)) for _ in peers]
    cells = [0] * len(peers)
    open_cells = set(range(len(peers)))

    def fill() -> bool:
        if not open_cells:
            return True
        least = min(len(choices[i]) for i in open_cells)
        index = random.choice([i for i in sorted(open_cells) if len(choices[i]) == least])
        open_cells.remove(index)
        options = sorted(choices[index])
        random.shuffle(options)
        for number in options:
            cells[index] = number
            taken = [p for p in peers[index] if p in open_cells and number in choices[p]]
            for peer in taken:
                choices[peer].remove(number)
            if all(choices[peer] for peer in taken) and fill():
                return True
            for peer in taken:
                choices[peer].add(number)
        cells[index] = 0
        open_cells.add(index)
        return False

    fill()
    return cells
