"""Star battle: instance {"task", "regions"}, a letter a cell. Every solution counts."""

import itertools
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, around, beside, puzzle
from rlvr_jax.verifiers.puzzles.notation import CELLS, read_cells_on, show_cells

# Side of the board.
LEVELS = (5, 6, 8)

_RULES = (
    "Place stars on this board, so that every row, every column and every region of equal letters"
    " has one star and no two stars touch, not even at a corner."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether each row, column and region has one star, and none touches another."""
    regions = gold["regions"]
    stars, rows, columns = read_cells_on(answer, regions), len(regions), len(regions[0])
    if stars is None:
        return False
    letters = sorted(regions[row][column] for row, column in stars)
    return (
        sorted(row for row, _ in stars) == list(range(rows))
        and sorted(column for _, column in stars) == list(range(columns))
        and letters == sorted({letter for row in regions for letter in row})
        and not any(stars.intersection(around(star)) for star in stars)
    )


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on: regions that grow around the stars of a solution."""
    side = LEVELS[level - 1]
    places = random.sample(range(side), side)
    while any(abs(a - b) < 2 for a, b in itertools.pairwise(places)):
        random.shuffle(places)
    stars = list(enumerate(places))
    letter_of: dict[Cell, str] = {star: chr(ord("A") + n) for n, star in enumerate(stars)}
    border = list(stars)
    left = {*itertools.product(range(side), repeat=2)} - {*stars}
    while left:
        cell = random.choice(border)
        if free := [near for near in beside(cell) if near in left]:
            letter_of[near := random.choice(free)] = letter_of[cell]
            left.remove(near)
            border.append(near)
        else:
            border.remove(cell)
    regions = ["".join(letter_of[r, c] for c in range(side)) for r in range(side)]
    board, found = "\n".join(regions), show_cells(stars)
    return puzzle("star_battle", _RULES, board, f"the stars {CELLS}", found, regions=regions)
