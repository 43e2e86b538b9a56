"""Hints that give nothing away, and questions made longer by one."""

import pytest

from rlvr_jax.tasks.hints import augment, hint_ok

GENERATION = "<think>x</think>\nFirst 3+4=7. Then 7*2=14. So 14."


@pytest.mark.parametrize(
    ("hint", "answer", "fine"),
    [
        ("Work modulo 12.", "12", False),
        ("There are 120 cases", "12", True),
        ("The  Answer is  X", "x", False),
        ("x_1 is the first root", "x", False),
    ],
)
def test_a_hint_does_not_say_the_answer(hint, answer, fine):
    assert hint_ok(hint, answer) is fine


def test_a_question_shows_the_first_characters_of_its_solution():
    assert augment("P", GENERATION, "14", 0.5) == "P\n\n## Hint.\nFirst 3+4=7. Th"
    assert augment("P", GENERATION, "14", 0.25) == "P\n\n"
    assert augment("P", GENERATION, "15", 0.5) is None
    assert augment("P", "no thought, 14 and more", "14", 1.0).endswith("no thought, 14 and more")
