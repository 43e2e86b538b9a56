"""Campsite (tents and trees): instance {"task", "grid", "rows", "cols"}, rows of T and dots.

Every solution counts.
"""

from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, around, beside, inside
from rlvr_jax.verifiers.puzzles.notation import ask, read_cells, show_cells

__all__ = ["LEVELS", "check", "generate"]

# Side and the largest number of trees.
LEVELS = ((5, 4), (6, 6), (8, 11))

RULES = (
    "Place a tent for every tree (T) of this board, on free cells (.). Each tree has a tent of its"
    " own that shares a side with it, no two tents touch, not even at a corner, and the rows, from"
    " the top, and the columns, from the left, have these numbers of tents."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether tents stand apart on free cells, fit the counts, and trees and tents form pairs."""
    tents, grid = read_cells(answer), gold["grid"]
    rows, columns = len(grid), len(grid[0])
    if tents is None or not inside(tents, rows, columns):
        return False
    trees = {(r, c) for r in range(rows) for c in range(columns) if grid[r][c] == "T"}
    return (
        len(tents) == len(trees)
        and all(grid[row][column] == "." for row, column in tents)
        and not any({*tents} & {*around(tent, rows, columns)} for tent in tents)
        and [sum(row == r for row, _ in tents) for r in range(rows)] == list(gold["rows"])
        and [sum(column == c for _, column in tents) for c in range(columns)] == list(gold["cols"])
        and _paired({tent: trees.intersection(beside(tent, rows, columns)) for tent in tents})
    )


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on."""
    side, most = LEVELS[level - 1]
    tents: set[Cell] = set()
    trees: set[Cell] = set()
    cells = [(r, c) for r in range(side) for c in range(side)]
    for tent in random.sample(cells, len(cells)):
        free = [near for near in beside(tent, side, side) if near not in tents | trees]
        apart = not tents.intersection(around(tent, side, side))
        if free and apart and tent not in trees and len(tents) < most:
            tents.add(tent)
            trees.add(random.choice(free))
    grid = ["".join(".T"[(r, c) in trees] for c in range(side)) for r in range(side)]
    rows = [sum(row == r for row, _ in tents) for r in range(side)]
    columns = [sum(column == c for _, column in tents) for c in range(side)]
    counts = f"rows {' '.join(map(str, rows))}\ncolumns {' '.join(map(str, columns))}"
    return Puzzle(
        ask(
            RULES,
            "\n".join([*grid, "", counts]),
            "the tents as (row, column), …, both counted from 0",
        ),
        {"task": "campsite", "grid": grid, "rows": rows, "cols": columns},
        show_cells(tents),
    )


def _paired(near: dict[Cell, set[Cell]]) -> bool:
    """Whether each tent can have a tree of its own, by augmenting paths."""
    owner: dict[Cell, Cell] = {}

    def place(tent: Cell, tried: set[Cell]) -> bool:
        for tree in near[tent] - tried:
            tried.add(tree)
            if tree not in owner or place(owner[tree], tried):
                owner[tree] = tent
                return True
        return False

    return all(place(tent, set()) for tent in near)
