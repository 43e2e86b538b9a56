"""Campsite (tents and trees): instance {"task", "grid", "rows", "cols"}, rows of T and dots.

Every solution counts.
"""

import itertools
from collections.abc import Iterable
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, around, beside, puzzle
from rlvr_jax.verifiers.puzzles.notation import CELLS, read_cells_on, show_cells, show_lines

# Side and the largest number of trees.
LEVELS = ((5, 4), (6, 6), (8, 11))

_RULES = (
    "Place a tent for every tree (T) of this board, on free cells (.). Each tree has a tent of its"
    " own that shares a side with it, no two tents touch, not even at a corner, and the rows, from"
    " the top, and the columns, from the left, have these numbers of tents."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether tents are apart on free cells, match the counts, and trees and tents form pairs."""
    grid = gold["grid"]
    tents, rows, columns = read_cells_on(answer, grid), len(grid), len(grid[0])
    if tents is None:
        return False
    trees = {(r, c) for r in range(rows) for c in range(columns) if grid[r][c] == "T"}
    return (
        len(tents) == len(trees)
        and all(grid[row][column] == "." for row, column in tents)
        and not any(tents.intersection(around(tent)) for tent in tents)
        and _counts(tents, rows, columns) == (list(gold["rows"]), list(gold["cols"]))
        and _paired({tent: trees.intersection(beside(tent)) for tent in tents})
    )


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side, most = LEVELS[level - 1]
    tents: set[Cell] = set()
    trees: set[Cell] = set()
    cells = list(itertools.product(range(side), repeat=2))
    for tent in random.sample(cells, len(cells)):
        free = [near for near in beside(tent) if near in {*cells} - tents - trees]
        apart = not tents.intersection(around(tent))
        if free and apart and tent not in trees and len(tents) < most:
            tents.add(tent)
            trees.add(random.choice(free))
    grid = ["".join(".T"[(r, c) in trees] for c in range(side)) for r in range(side)]
    rows, cols = _counts(tents, side, side)
    board = "\n".join([*grid, "", show_lines({"rows": rows, "columns": cols})])
    found, form = show_cells(tents), f"the tents {CELLS}"
    return puzzle("campsite", _RULES, board, form, found, grid=grid, rows=rows, cols=cols)


def _counts(tents: Iterable[Cell], rows: int, columns: int) -> tuple[list[int], list[int]]:
    """Tents of each row and of each column."""
    in_rows = [sum(row == r for row, _ in tents) for r in range(rows)]
    return in_rows, [sum(column == c for _, column in tents) for c in range(columns)]


def _paired(near: dict[Cell, set[Cell]]) -> bool:
    """Whether each tent can have a separate tree, by augmenting paths."""
    owner: dict[Cell, Cell] = {}

    def place(tent: Cell, tried: set[Cell]) -> bool:
        for tree in near[tent] - tried:
            tried.add(tree)
            if tree not in owner or place(owner[tree], tried):
                owner[tree] = tent
                return True
        return False

    return all(place(tent, set()) for tent in near)
