"""Tic-tac-toe: instance {"task", "board", "turn"}. Every best move counts, by full search."""

import functools
from random import Random
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Puzzle, puzzle
from rlvr_jax.verifiers.puzzles.notation import read_cells_on, show_cells

# Numbers of free cells.
LEVELS = ((2, 3), (4,), (5, 6, 7))

_LINES = ("012", "345", "678", "036", "147", "258", "048", "246")
_OTHER = {"X": "O", "O": "X"}

_RULES = (
    "This is a position of tic-tac-toe; three equal marks in a row, column or diagonal win. It is"
    " {turn}'s turn. Find a best move of {turn}: one that wins if both sides go on without a"
    " mistake, or else one that does not lose."
)


def check(answer: str, gold: dict[str, Any]) -> bool:
    """Whether the answer is one cell and none of the other moves leads to a better end."""
    cells = read_cells_on(answer, gold["board"])
    if cells is None or len(cells) != 1:
        return False
    ((row, column),) = cells
    return 3 * row + column in best_moves("".join(gold["board"]), gold["turn"])


def generate(random: Random, level: int) -> Puzzle:
    """A puzzle of a level from 1 on: a reachable position where not every move is a best one."""
    while True:
        number = 9 - random.choice(LEVELS[level - 1])
        board = ["."] * 9
        for turn, cell in enumerate(random.sample(range(9), number)):
            board[cell] = "XO"[turn % 2]
        position, turn = "".join(board), "XO"[number % 2]
        best = best_moves(position, turn)
        if not _won(position, "X") and not _won(position, "O") and len(best) < 9 - number:
            break
    rows = [position[:3], position[3:6], position[6:]]
    worse = next(cell for cell in range(9) if position[cell] == "." and cell not in best)
    return puzzle(
        "tic_tac_toe",
        _RULES.format(turn=turn),
        "\n".join(rows),
        "the cell of the move as (row, column), both counted from 0",
        *(show_cells([divmod(cell, 3)]) for cell in (random.choice(best), worse)),
        board=rows,
        turn=turn,
    )


def best_moves(board: str, turn: str) -> list[int]:
    """The free cells (0 to 8) that lead to the best end for the side that is to move."""
    free = [cell for cell, mark in enumerate(board) if mark == "."]
    values = {cell: -_value(_put(board, cell, turn), _OTHER[turn]) for cell in free}
    return [cell for cell in free if values[cell] == max(values.values())]


@functools.cache
def _value(board: str, turn: str) -> int:
    """1, 0 or -1 as the side that is to move wins, draws or loses; at most 9 moves deep."""
    if _won(board, _OTHER[turn]):
        return -1
    free = [cell for cell, mark in enumerate(board) if mark == "."]
    return max((-_value(_put(board, cell, turn), _OTHER[turn]) for cell in free), default=0)


def _put(board: str, cell: int, mark: str) -> str:
    return board[:cell] + mark + board[cell + 1 :]


def _won(board: str, mark: str) -> bool:
    return any(all(board[int(cell)] == mark for cell in line) for line in _LINES)
