"""How puzzles are written and answers read: grids, cells, paths, moves, single words.

Nothing is evaluated. Each reader takes the text of a block and returns None where it is not in the
form; they are linear in the text, and numbers have at most six digits.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell

_NUMBER = re.compile(r"[0-9]{1,6}")
# What the letter of a move adds to row and column.
STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def read_numbers(text: str, separators: Sequence[str] = (",",)) -> list[int] | None:
    """Numbers with one separator or white space between two; at least one number."""
    for separator in separators[1:]:
        text = text.replace(separator, separators[0])
    pieces = [piece.split() for piece in text.split(separators[0])]
    words = [word for piece in pieces for word in piece]
    if not all(pieces) or not all(map(_NUMBER.fullmatch, words)):
        return None
    return [int(word) for word in words]


def read_grid(text: str) -> list[list[int]] | None:
    """A row a line, cells digits with blanks or commas between; rows may differ in length."""
    rows = [read_numbers(line) for line in text.strip().split("\n")]
    return None if None in rows else rows


def read_cells(text: str) -> list[Cell] | None:
    """(row, column), … from 0, in brackets [ ] or not; no cell twice; nothing is no cell."""
    text = text.strip()
    if text[:1] == "[" and text[-1:] == "]":
        text = text[1:-1]
    *pieces, tail = text.split(")")
    if tail.strip():
        return None
    cells = []
    for number, piece in enumerate(map(str.strip, pieces)):
        if number:
            if piece[:1] != ",":
                return None
            piece = piece[1:].lstrip()
        cell = read_numbers(piece[1:]) if piece[:1] == "(" and piece.count(",") == 1 else None
        if cell is None or len(cell) != 2:
            return None
        cells.append((cell[0], cell[1]))
    return cells if len(set(cells)) == len(cells) else None


def read_moves(text: str) -> str | None:
    """Letters U D L R, with white space or not."""
    moves = "".join(text.split())
    return moves if set(moves) <= set(STEPS) else None


def is_word(text: str, word: str) -> bool:
    """Whether a text is that word or phrase alone, in any case and with a full stop or not."""
    return " ".join(text.split()).lower().removesuffix(".") == word


def show_grid(rows: Iterable[Iterable[Any]], blank: Any = None) -> str:
    """A row a line with blanks between the cells; `blank` is shown as a dot."""
    return "\n".join(" ".join("." if x == blank else str(x) for x in row) for row in rows)


def show_cells(cells: Iterable[Cell]) -> str:
    """The cells in order, as `read_cells` reads them."""
    return ", ".join(f"({row}, {column})" for row, column in sorted(cells))


def ask(rules: str, board: str, form: str) -> str:
    """The question: rules, instance, and how to answer."""
    return f"{rules}\n\n{board}\n\nAnswer in a fenced block (```) that holds nothing but {form}."
