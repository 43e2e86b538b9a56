"""Countdown: neighbours of the cases, and puzzles that can be solved."""

import random

import pytest

from rlvr_jax.verifiers import Check, examine
from rlvr_jax.verifiers.puzzles.countdown import MAX_CHARACTERS, check, generate

GOLD = {"numbers": [4, 6, 1], "target": 24}


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("4*6*1", 1),
        ("6*4/1", 1),
        ("1*(4*6)", 1),
        ("((4))*6*1", 1),
        ("4·6·1", 1),
        ("4*6*1=24", 1),
        ("4*6*1 = 24 ", 1),
        ("24 = 4*6*1", 0),
        ("4*6*1 = 24 = 24", 0),
        ("4*6*1 = 024", 0),
        ("4*6*1 =", 0),
        ("= 24", 0),
        ("4*6*1 == 24", 0),
        ("4*6^1", 0),
        ("4*6*1.0", 0),
        ("4*6*+1", 0),
        ("4*(6)(1)", 0),
        ("4 6 1", 0),
        ("4x6x1", 0),
        ("4*61", 0),
        ("$4*6*1$", 0),
        ("6*4", 0),
        ("4*6*1+0", 0),
    ],
)
def test_the_value_and_the_numbers_must_be_right(answer, right):
    assert check(answer, GOLD).outcome == right


def test_whether_it_parses_stands_apart_from_whether_it_is_right():
    assert check("4+6+1", GOLD).info == {"parses": 1.0}
    assert check("4+6+", GOLD).info == {"parses": 0.0}
    assert check("4*6*1 = 25", GOLD).info == {"parses": 0.0}


def test_an_answer_may_have_two_hundred_characters():
    padding = " " * (MAX_CHARACTERS - len("4*6*1"))
    assert check(f"4*6{padding}*1", GOLD).outcome == 1
    assert check(f"4*6{padding} *1", GOLD).outcome == 0


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_a_puzzle_has_the_solution_that_is_given(count):
    for seed in range(20):
        instance = generate(random.Random(seed), count, max_value=50, max_target=200)
        gold = {"numbers": instance.numbers, "target": instance.target}
        assert len(instance.numbers) == count and 1 <= instance.target <= 200
        assert all(1 <= number <= 50 for number in instance.numbers)
        assert check(instance.solution, gold).outcome == 1
        assert check(instance.solution[:-1], gold).outcome == 0


def test_the_answer_is_what_the_tags_hold():
    module = "rlvr_jax.verifiers.puzzles.countdown"
    found = examine(
        Check(f"{module}:check", f"{module}:extract"), "x <answer> 4*6*1 </answer>", GOLD
    )
    assert (found.outcome, found.answer) == (1.0, "4*6*1")
