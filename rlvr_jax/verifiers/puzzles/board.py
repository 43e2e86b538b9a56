"""What puzzles on boards share: a cell, its neighbours, connected sets, Latin squares."""

from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

Cell = tuple[int, int]


class Puzzle(NamedTuple):
    """A generated puzzle.

    Fields:
      question: rules, instance and form of the answer, for the policy.
      instance: JSON object that the check reads; "task" names the puzzle.
      solution: a right answer in the form that the question asks for.
      wrong: a wrong one, where the solution of another puzzle may be right; "": none is known.
    """

    question: str
    instance: dict[str, Any]
    solution: str
    wrong: str = ""


def inside(cells: Iterable[Cell], rows: int, columns: int) -> bool:
    """Whether all cells are on a board; they are counted from 0."""
    return all(0 <= row < rows and 0 <= column < columns for row, column in cells)


def beside(cell: Cell, rows: int, columns: int) -> list[Cell]:
    """The cells of a board that share a side with a cell."""
    row, column = cell
    near = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
    return [each for each in near if inside([each], rows, columns)]


def around(cell: Cell, rows: int, columns: int) -> list[Cell]:
    """The cells of a board that share a side or a corner with a cell."""
    row, column = cell
    return [
        (r, c)
        for r in range(max(row - 1, 0), min(row + 2, rows))
        for c in range(max(column - 1, 0), min(column + 2, columns))
        if (r, c) != cell
    ]


def connected(cells: set[Cell], rows: int, columns: int) -> bool:
    """Whether one can walk between all cells over common sides; true of no cell."""
    reached = set(list(cells)[:1])
    border = list(reached)
    while border:
        for cell in beside(border.pop(), rows, columns):
            if cell in cells and cell not in reached:
                reached.add(cell)
                border.append(cell)
    return reached == cells


def latin_square(random: Random, side: int) -> list[list[int]]:
    """A square with each of 1 .. side once in every row and column, row by row at random.

    Rows without a repeated number in a column can always be completed, so that only choices within
    a row are ever taken back.
    """
    rows: list[list[int]] = []
    for _ in range(side):
        columns = list(zip(*rows, strict=True)) or [()] * side
        free = [[n for n in range(1, side + 1) if n not in column] for column in columns]
        rows.append(_distinct(random, free, ()))
    return rows


def _distinct(random: Random, choices: list[list[int]], chosen: tuple[int, ...]) -> list[int]:
    """One number of each list, no two equal, that begin as chosen; empty if there are none."""
    if len(chosen) == len(choices):
        return list(chosen)
    options = [number for number in choices[len(chosen)] if number not in chosen]
    random.shuffle(options)
    for number in options:
        if found := _distinct(random, choices, (*chosen, number)):
            return found
    return []
