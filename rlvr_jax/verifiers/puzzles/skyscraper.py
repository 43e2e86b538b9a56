"""Skyscrapers: instance {"task", "top", "bottom", "left", "right"}, 0 is no clue.

Every solution counts.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, latin_square
from rlvr_jax.verifiers.puzzles.notation import ask, read_grid, show_grid

# Side of the board and how many of its clues are shown.
LEVELS = ((3, 7), (4, 12), (5, 16))

_SIDES = ("top", "bottom", "left", "right")


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether each height is once in every line, and as many are seen as the clues say."""
    grid, side = read_grid(answer), len(gold["top"])
    if grid is None or list(map(len, grid)) != [side] * side:
        return False
    heights = set(range(1, side + 1))
    latin = all(set(line) == heights for line in [*grid, *zip(*grid, strict=True)])
    seen = _seen(grid)
    return latin and all(
        clue in (0, number)
        for name in _SIDES
        for clue, number in zip(gold[name], seen[name], strict=True)
    )


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on."""
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
    board = "\n".join(f"{name}: {' '.join(map(str, clues[name]))}" for name in _SIDES)
    return Puzzle(
        ask(rules, board, "the heights, a row a line, blanks between cells"),
        {"task": "skyscraper", **clues},
        show_grid(grid),
    )


def _seen(grid: list[list[int]]) -> dict[str, list[int]]:
    """How many buildings are seen from each place of each side."""
    columns = list(zip(*grid, strict=True))
    return {
        "top": [_visible(line) for line in columns],
        "bottom": [_visible(line[::-1]) for line in columns],
        "left": [_visible(line) for line in grid],
        "right": [_visible(line[::-1]) for line in grid],
    }


def _visible(line: Sequence[int]) -> int:
    return sum(height == max(line[: place + 1]) for place, height in enumerate(line))
