"""Boards of puzzles: cells, neighbours, connected sets, Latin squares."""

import itertools
from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

Cell = tuple[int, int]


class Puzzle(NamedTuple):
    """A generated puzzle.

    Fields:
      question: rules, instance and form of the answer, for the policy.
      instance: JSON object for the check; "task" names the puzzle.
      solution: a correct answer in the requested form.
      wrong: an incorrect answer, if the solution of another puzzle may be correct; "": unknown.
    """

    question: str
    instance: dict[str, Any]
    solution: str
    wrong: str = ""


def puzzle(
    task: str, rules: str, board: str, form: str, solution: str, wrong: str = "", /, **instance: Any
) -> Puzzle:
    """A puzzle whose question is rules, board, and the form of the answer.

    Args:
      task: name of the puzzle.
      rules: first part of the question.
      board: second part.
      form: last part: how the answer is written.
      solution: a correct answer.
      wrong: an incorrect answer; empty: none.
      instance: data for the verifier.
    """
    form = f"Answer in a fenced block (```) that holds nothing but {form}."
    return Puzzle(f"{rules}\n\n{board}\n\n{form}", {"task": task, **instance}, solution, wrong)


def inside(cells: Iterable[Cell], rows: int, columns: int) -> bool:
    """Whether all cells are on a board; they are counted from 0."""
    return all(0 <= row < rows and 0 <= column < columns for row, column in cells)


def beside(cell: Cell) -> list[Cell]:
    """The cells that share a side with a cell, on the board or not."""
    row, column = cell
    return [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]


def around(cell: Cell) -> list[Cell]:
    """The cells that share a side or a corner with a cell, on the board or not."""
    row, column = cell
    near = itertools.product(range(row - 1, row + 2), range(column - 1, column + 2))
    return [each for each in near if each != cell]


def reached(start: Cell, cells: set[Cell]) -> dict[Cell, Cell | None]:
    """The cells that are connected with a start over common sides, nearest first. Each has the
    previous cell on a shortest way."""
    before: dict[Cell, Cell | None] = {start: None}
    order = [start]
    for cell in order:
        for near in beside(cell):
            if near in cells and near not in before:
                before[near] = cell
                order.append(near)
    return before


def connected(cells: set[Cell]) -> bool:
    """Whether all cells are connected over common sides; true for no cells."""
    return not cells or reached(next(iter(cells)), cells).keys() == cells


def latin_square(random: Random, side: int) -> list[list[int]]:
    """A square with each of 1 .. side once in every row and column, filled row by row at random.
    Rows without a repeated number in a column can always be completed, so backtracking stays within
    a row."""
    rows: list[list[int]] = []
    for _ in range(side):
        columns = list(zip(*rows, strict=True)) or [()] * side
        free = [[n for n in range(1, side + 1) if n not in column] for column in columns]
        rows.append(_distinct(random, free, ()))
    return rows


def _distinct(random: Random, choices: list[list[int]], chosen: tuple[int, ...]) -> list[int]:
    """One number of each list, all different, beginning with `chosen`; empty if there are none."""
    if len(chosen) == len(choices):
        return list(chosen)
    options = [number for number in choices[len(chosen)] if number not in chosen]
    random.shuffle(options)
    for number in options:
        if found := _distinct(random, choices, (*chosen, number)):
            return found
    return []
