"""Questions and answers of puzzles: grids, cells, paths, moves, single words.

Nothing is evaluated. Each reader takes the text of a block, and returns None if it has another
form. The readers are linear in the text, and numbers have at most six digits.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlvr_jax.verifiers.puzzles.board import Cell, inside

_NUMBER = re.compile(r"[0-9]{1,6}")
# Added to row and column by the letter of a move.
STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
# Ends of the forms of answers that `read_grid`, `read_cells` and `read_moves` read.
GRID = "a row a line, blanks between cells"
CELLS = "as (row, column), …, both counted from 0"
MOVES = "the letters of the moves in their order"


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
    """A line per row, cells as digits with blanks or commas between; rows may differ in length."""
    rows = [read_numbers(line) for line in text.strip().split("\n")]
    return None if None in rows else rows


def read_filled(
    text: str, given: Sequence[Sequence[Any]], blank: Any = None
) -> list[list[int]] | None:
    """The grid of an answer; None unless it has the shape and the numbers of a given one.

    Args:
      blank: value of the given cells that may have any number.
    """
    grid = read_grid(text)
    return grid if grid is not None and fits(grid, given, blank) else None


def fits(grid: Sequence[Sequence[Any]], given: Sequence[Sequence[Any]], blank: Any = None) -> bool:
    """Whether a grid has the shape of a given one, and its values where these are not blank."""
    return list(map(len, grid)) == list(map(len, given)) and all(
        wanted in (blank, cell)
        for row, others in zip(grid, given, strict=True)
        for cell, wanted in zip(row, others, strict=True)
    )


def read_cells_on(text: str, grid: Sequence[Sequence[Any]]) -> set[Cell] | None:
    """The cells of an answer; None unless all are on the board."""
    cells = read_cells(text)
    return None if cells is None or not inside(cells, len(grid), len(grid[0])) else set(cells)


def read_cells(text: str) -> list[Cell] | None:
    """Reads pairs (row, column), counted from 0, with or without [ ] around them.

    The empty text is the empty list. None: another text, or a pair that occurs twice.
    """
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


def moved(grid: Sequence[Sequence[Any]], cell: Cell, letter: str) -> Cell | None:
    """The cell to which a move leads; None if it is off the board."""
    found = cell[0] + STEPS[letter][0], cell[1] + STEPS[letter][1]
    return found if inside([found], len(grid), len(grid[0])) else None


def is_word(text: str, word: str) -> bool:
    """Whether a text is only that word or phrase, in any case and with a full stop or not."""
    return " ".join(text.split()).lower().removesuffix(".") == word


def show_grid(rows: Iterable[Iterable[Any]], blank: Any = None) -> str:
    """A line per row with blanks between the cells; `blank` is shown as a dot."""
    return "\n".join(" ".join("." if x == blank else str(x) for x in row) for row in rows)


def show_cells(cells: Iterable[Cell]) -> str:
    """The cells in order, as `read_cells` reads them."""
    return ", ".join(f"({row}, {column})" for row, column in sorted(cells))


def show_lines(lines: Mapping[str, Iterable[Any]]) -> str:
    """A line for each name and its values."""
    return "\n".join(f"{name} {' '.join(map(str, values))}" for name, values in lines.items())
