"""Roles and tables as they are written."""

import pytest

from rlvr_jax.verifiers.puzzles import knights, zebra

GOLD = {"Ann": "knight", "Bob": "knave"}
ROWS = [[1, "red", "tea"], [2, "blue", "milk"]]
HEAD = "| House | Colour | Drink |\n| :-- | --: | :-: |\n"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Ann is a knight and Bob is a knave", 1),
        ("Ann  is\na knight; bob IS A KNAVE!", 1),
        ("- Ann is a knight.\n- Bob is a knave.", 1),
        ("Ann is a knight, Ann is a knave", 0),
        ("Ann is a knight, Bob is a knave, Cy is a knave", 0),
        ("Anna is a knight, Bob is a knave", 0),
        ("Ann is a knights, Bob is a knave", 0),
        ("Ann is an knight, Bob is a knave", 0),
        ("Ann and Bob: a knight is a knave", 0),
        ("Bob is a knight, Ann is a knave", 0),
        ("AnnBob is a knight, Bob is a knave", 0),
    ],
)
def test_every_person_is_named_once(answer, right):
    assert knights.check(answer, GOLD).outcome == right


def test_the_answer_is_told_in_one_way():
    first = knights.check("Bob is a knave, ANN is a knight", GOLD).answer
    assert first == knights.check("Ann is a knight, bob is a knave", GOLD).answer
    assert first == "Ann knight, Bob knave"
    assert knights.check("nobody", GOLD).answer is None


def test_names_with_signs_of_patterns_are_read_as_they_are():
    gold = {"A.": "knight", "B*": "knave"}
    assert knights.check("A. is a knight, B* is a knave", gold).outcome == 1
    assert knights.check("Ax is a knight, BB is a knave", gold).outcome == 0


@pytest.mark.parametrize(
    ("table", "cells"),
    [
        (f"{HEAD}| 1 | RED | tea |\n| 2 | blue | milk |", 1.0),
        (f"so\n  {HEAD}  |1|red|tea|\n  |2|blue|milk|  \nthat is it", 1.0),
        (f"{HEAD}|1|red|tea|\n|---|---|---|\n|2|blue|milk|", 1.0),
        ("|1|red|tea|\n|2|blue|milk|", 0.5),  # the first line is the header
        (f"{HEAD}|1|red|tea|\n\n|2|blue|milk|", 0.0),  # the last run is one line
        (f"{HEAD}|1|red|tea|x|\n|2|blue|milk|", 0.5),
        (f"{HEAD}|1|red|tea|\n|3|blue|milk|", 0.5),
        (f"{HEAD}|1|red|blue|\n|2|tea|milk|", 0.5),
        (f"{HEAD}", 0.0),
        ("|", 0.0),
        ("||", 0.0),
        ("", 0.0),
    ],
)
def test_a_table_is_compared_cell_by_cell(table, cells):
    found = zebra.check(table, ROWS)
    assert found.info["cells"] == cells and found.outcome == (cells == 1)


def test_a_table_in_the_thinking_is_no_answer():
    table = f"{HEAD}|1|red|tea|\n|2|blue|milk|"
    assert zebra.check(zebra.extract(f"<think>{table}</think>so"), ROWS).outcome == 0
    assert zebra.check(zebra.extract(f"<think>so</think>{table}"), ROWS).outcome == 1


def test_all_combinations_are_not_paid():
    rows = [f"|{n}|{a}|{b}|" for n in (1, 2) for a in ("red", "blue") for b in ("tea", "milk")]
    assert zebra.check(HEAD + "\n".join(rows), ROWS).outcome == 0
