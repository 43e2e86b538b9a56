"""Texts that are made to hurt: every check gives a grade, at once."""

import random

import pytest
from own_cpu import own_cpu

from rlvr_jax.verifiers import Check, examine
from rlvr_jax.verifiers.puzzles.enigmata import PUZZLES

SECONDS = 2.0  # for a text of about a megabyte; a quadratic rule takes minutes
MEGABYTE = 10**6
PUZZLE_ROOM, TEXT_ROOM = "rlvr_jax.verifiers.puzzles", "rlvr_jax.verifiers.texts"

ROUTE = {
    "type": "route",
    "from": "A",
    "to": "B",
    "transfers": 1,
    "map": "easy",
    "lines": {"L": ["A"]},
}
CHECKS = {
    "countdown": ({"numbers": [9, 9, 9, 9], "target": 1}, f"{PUZZLE_ROOM}.countdown:extract"),
    "knights": ({"Ann": "knight", "Bob": "knave"}, f"{PUZZLE_ROOM}.knights:extract"),
    "combinatorial": ([1, 2], ""),
    "zebra": ([[1, "red"]], f"{PUZZLE_ROOM}.zebra:extract"),
    "critique_rl": (True, f"{TEXT_ROOM}.critique_rl:extract"),
    "format_rewards": ("", ""),
    "affectgpt_r1": ("happy", ""),
    "rewardmap": (ROUTE, ""),
    "tp_judge": (None, ""),
}
PARTS = [
    *("(", "[", "{", "<answer>", "</answer>", "<think>", "```", "```\n", "`", "~", "|", "|\n"),
    *(
        r"\conclusion{",
        r"\conclusion{}",
        r"\ids{",
        r"\ids{1,",
        "(0, 1), ",
        "Ann is a ",
        "Ann ",
        "\ud800",
    ),
    *(" ", "\n", "\x00", "1", "9^", "9**", "(9^100)^", "-", "1 ", "1,", "1=", "2 = 2, ", "٣", "𝟙"),
    *(
        "--\nRoute Name: A\n",
        "Route Name:",
        "->",
        "U",
        "push ",
        "knight ",
        ",",
        "\r\n",
        "1:",
        "\u0301",
    ),
]
WRAPS = [
    "{}",
    "<answer>{}</answer>",
    "```\n{}\n```",
    r"\conclusion{{{}}}",
    r"\ids{{{}}} \answer{{{}}}",
]


def graded(name, response):
    gold, extract = CHECKS[name]
    room = PUZZLE_ROOM if extract.startswith(PUZZLE_ROOM) or name == "combinatorial" else TEXT_ROOM
    return examine(Check(f"{room}.{name}:check", extract), response, gold)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("wrap", WRAPS)
def test_any_text_gets_a_grade(name, wrap):
    for part in PARTS:
        for text in (part, part * 50):
            assert graded(name, wrap.format(text, text)).outcome in (0.0, 1.0, None)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "part", ["(", "```", "|\n", r"\conclusion{", r"\ids{", " ", "9^", "1=", "Ann "]
)
@pytest.mark.parametrize("wrap", WRAPS[:3])
@pytest.mark.parametrize("name", CHECKS)
def test_a_megabyte_takes_no_time(name, part, wrap):
    text = wrap.format(part * (MEGABYTE // len(part)))
    with own_cpu() as spent:
        assert graded(name, text).outcome in (0.0, None)
    assert spent[0] < SECONDS


@pytest.mark.thorough
@pytest.mark.parametrize("name", PUZZLES)
def test_any_block_gets_a_grade(name):
    instance = PUZZLES[name].generate(random.Random(0), 1).instance
    for part in PARTS:
        for text in (part, part * 50, part * (MEGABYTE // 10 // len(part))):
            with own_cpu() as spent:
                found = PUZZLES[name].check(text, instance)
            assert getattr(found, "outcome", found) == 0
            assert spent[0] < SECONDS
