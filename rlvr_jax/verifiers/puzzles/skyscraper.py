"""Skyscrapers: instance {"task", "top", "bottom", "left", "right"}, 0 is not a clue.

Every solution counts.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, latin_square, puzzle
from rlvr_jax.verifiers.puzzles.notation import GRID, fits, read_filled, show_grid, show_lines

# Side of the board and number of shown clues.
LEVELS = ((3, 7), (4, 12), (5, 16))

_SIDES = ("top", "bottom", "left", "right")


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether each height is once in every line, and the visible buildings match the clues."""
    side = len(gold["top"])
    grid = read_filled(answer, [[None] * side] * side)
    if grid is None:
        return False
    heights = set(range(1, side + 1))
    latin = all(set(line) == heights for line in [*grid, *zip(*grid, strict=True)])
    return latin and fits([*_seen(grid).values()], [gold[name] for name in _SIDES], blank=0)


def generate(random: Random, level: int) -> Puzzle:
    """A random puzzle of a level, counted from 1."""
    side, shown = LEVELS[level - 1]
    grid = latin_square(random, side)
    clues = _seen(grid)
    places = [(name, index) for name in _SIDES for index in range(side)]
    for name, index in random.sample(places, 4 * side - shown):
        clues[name][index] = 0
    rules = (
        f"On a board of {side} × {side} every cell has a building of height 1 to {side}, each"
        " height once in every row and column. A clue at the edge says how many buildings are seen"
        " from there along the row or column, as a higher one hides all lower ones behind it; 0 is"
        " no clue. The clues are in the order from left to right and from top to bottom."
    )
    board = show_lines({f"{name}:": clues[name] for name in _SIDES})
    return puzzle("skyscraper", rules, board, f"the heights, {GRID}", show_grid(grid), **clues)


def _seen(grid: list[list[int]]) -> dict[str, list[int]]:
    """The number of buildings that are seen from each place of each side."""
    columns = list(zip(*grid, strict=True))
    return {
        "top": [_visible(line) for line in columns],
        "bottom": [_visible(line[::-1]) for line in columns],
        "left": [_visible(line) for line in grid],
        "right": [_visible(line[::-1]) for line in grid],
    }


def _visible(line: Sequence[int]) -> int:
    return sum(height == max(line[: place + 1]) for place, height in enumerate(line))
