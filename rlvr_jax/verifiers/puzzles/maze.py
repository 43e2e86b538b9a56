"""Mazes: instance {"task", "grid"}, rows of # . S G; the moves are played and every way counts."""

import itertools
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, Puzzle, beside, puzzle, reached
from rlvr_jax.verifiers.puzzles.notation import MOVES, STEPS, moved, read_moves

# Rows and columns of corridor cells; n of them take 2 n + 1 cells, with the walls.
LEVELS = ((3, 4), (4, 5), (6, 6))

_LETTERS = {step: letter for letter, step in STEPS.items()}

_RULES = (
    "Find a way through this maze from S to G; # is a wall. A move is a letter and goes one cell: U"
    " up, D down, L left, R right."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the moves go from S through no wall and end at G."""
    moves, grid = read_moves(answer), gold["grid"]
    if moves is None:
        return False
    cell = next((r, line.index("S")) for r, line in enumerate(grid) if "S" in line)
    for move in moves:
        cell = moved(grid, cell, move)
        if cell is None or grid[cell[0]][cell[1]] == "#":
            return False
    return grid[cell[0]][cell[1]] == "G"


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on: a tree of corridors, S and G at the ends of a longest path.

    The longest path from any cell ends at one end of a longest path of the tree.
    """
    rows, columns = LEVELS[level - 1]
    grid = [["#"] * (2 * columns + 1) for _ in range(2 * rows + 1)]
    way = [(random.randrange(rows), random.randrange(columns))]
    rooms = {*itertools.product(range(rows), range(columns))} - {*way}
    grid[2 * way[0][0] + 1][2 * way[0][1] + 1] = "."
    while way:
        row, column = way[-1]
        fresh = [room for room in beside(way[-1]) if room in rooms]
        if not fresh:
            way.pop()
            continue
        r, c = random.choice(fresh)
        grid[2 * r + 1][2 * c + 1] = grid[row + r + 1][column + c + 1] = "."
        rooms.remove((r, c))
        way.append((r, c))
    start = _farthest(grid, (1, 1))[-1]
    path = _farthest(grid, start)
    for letter, (row, column) in zip("SG", (path[0], path[-1]), strict=True):
        grid[row][column] = letter
    lines = ["".join(line) for line in grid]
    moves = "".join(_LETTERS[b[0] - a[0], b[1] - a[1]] for a, b in itertools.pairwise(path))
    return puzzle("maze", _RULES, "\n".join(lines), MOVES, moves, grid=lines)


def _farthest(grid: list[list[str]], start: Cell) -> list[Cell]:
    """The way from a cell to the one that is farthest from it, by breadth-first search."""
    free = {(r, c) for r, line in enumerate(grid) for c, mark in enumerate(line) if mark != "#"}
    before = reached(start, free)
    path = [next(reversed(before))]
    while (cell := before[path[-1]]) is not None:
        path.append(cell)
    return path[::-1]
