"""How answers of puzzles are read."""

import pytest

from rlvr_jax.verifiers.puzzles.notation import (
    is_word,
    read_cells,
    read_grid,
    read_moves,
    read_numbers,
    show_cells,
    show_grid,
)

ARROWS = (",", "->")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1 2 3\n4 5 6", [[1, 2, 3], [4, 5, 6]]),
        ("1,2\n3, 4", [[1, 2], [3, 4]]),
        ("  1\t2 \r\n 3 4\r\n\n", [[1, 2], [3, 4]]),
        ("12", [[12]]),
        ("012 7", [[12, 7]]),
        ("1 2\n\n3 4", None),
        ("1,,2", None),
        ("1,2,", None),
        ("[[1,2],[3,4]]", None),
        ("1 2 x", None),
        ("-1 2", None),
        ("1.0 2", None),
        ("٤ 1", None),
        ("1" * 7, None),
        ("", None),
    ],
)
def test_a_grid_is_a_row_a_line(text, wanted):
    assert read_grid(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(0, 1), (2, 3)", [(0, 1), (2, 3)]),
        ("[(0,1),(2,3)]", [(0, 1), (2, 3)]),
        (" [ ( 0 , 1 ) ,\n(2,3) ] ", [(0, 1), (2, 3)]),
        ("[]", []),
        ("", []),
        ("(0, 1) (2, 3)", None),
        ("(0, 1),, (2, 3)", None),
        ("(0, 1),", None),
        (",(0, 1)", None),
        ("[(0, 1)", None),
        ("(0, 1)]", None),
        ("(0, 1, 2)", None),
        ("x0, 1)", None),
        ("(0,)", None),
        ("(0 1)", None),
        ("(0, 1 2)", None),
        ("((0, 1))", None),
        ("(-1, 0)", None),
        ("(0, 1), (0, 1)", None),
        ("(0, 1) + [1]", None),
        ("cells (0, 1)", None),
    ],
)
def test_cells_are_pairs_with_commas_between(text, wanted):
    assert read_cells(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0 -> 1 -> 2", [0, 1, 2]),
        ("0->1,2 3", [0, 1, 2, 3]),
        ("0 -> -> 1", None),
        ("0 - 1", None),
        ("0 > 1", None),
        ("0 → 1", None),
        ("-> 1", None),
        ("", None),
    ],
)
def test_a_path_has_arrows_commas_or_blanks(text, wanted):
    assert read_numbers(text, ARROWS) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("DR", "DR"), (" D R\nU", "DRU"), ("", ""), ("dr", None), ("D,R", None), ("DX", None)],
)
def test_moves_are_letters(text, wanted):
    assert read_moves(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("no path", True),
        (" No  PATH. ", True),
        ("no path..", False),
        ("no", False),
        ("there is no path", False),
        ("no path 0 1", False),
    ],
)
def test_a_word_stands_alone(text, wanted):
    assert is_word(text, "no path") is wanted


def test_what_is_shown_is_read():
    grid, cells = [[1, 20], [300, 0]], [(3, 0), (0, 12)]
    assert read_grid(show_grid(grid)) == grid
    assert read_cells(show_cells(cells)) == sorted(cells)
    assert show_grid([[0, 1]], blank=0) == ". 1"
