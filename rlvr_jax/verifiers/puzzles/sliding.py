"""Sliding tiles: instance {"task", "start", "goal"}, 0 is the blank. Every way counts."""

from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import MOVES, moved, read_moves, show_grid

# Rows, columns, and the least and the largest number of moves that the tiles were mixed by.
LEVELS = ((3, 3, 6, 10), (3, 3, 12, 16), (4, 4, 10, 16))

_BACK = {"U": "D", "D": "U", "L": "R", "R": "L"}

_RULES = (
    "Slide the tiles from the first arrangement to the second; the dot is the blank cell. A move is"
    " a letter and says where the blank goes: U up, D down, L left, R right; it changes places with"
    " the tile there."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the moves stay on the board and end at the goal."""
    moves = read_moves(answer)
    if moves is None:
        return False
    grid = [list(row) for row in gold["start"]]
    blank = next((r, row.index(0)) for r, row in enumerate(grid) if 0 in row)
    for move in moves:
        if (blank := _slide(grid, blank, move)) is None:
            return False
    return grid == gold["goal"]


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on: the goal, mixed."""
    rows, columns, least, most = LEVELS[level - 1]
    goal = [[(r * columns + c + 1) % (rows * columns) for c in range(columns)] for r in range(rows)]
    start = [list(row) for row in goal]
    blank, moves = (rows - 1, columns - 1), ""
    while start == goal:
        for _ in range(random.randint(least, most)):
            while True:
                move = random.choice("UDLR")
                undone = moves and move == _BACK[moves[-1]]
                if not undone and (after := _slide(start, blank, move)):
                    break
            blank, moves = after, moves + move
    board = f"{show_grid(start, blank=0)}\n\n{show_grid(goal, blank=0)}"
    back = "".join(_BACK[move] for move in reversed(moves))
    return puzzle("sliding", _RULES, board, MOVES, back, start=start, goal=goal)


def _slide(grid: list[list[int]], blank: Cell, move: str) -> Cell | None:
    """Moves the blank in place; returns its new cell, or None (no move) if it is off the board."""
    if after := moved(grid, blank, move):
        grid[blank[0]][blank[1]], grid[after[0]][after[1]] = grid[after[0]][after[1]], 0
    return after
