"""Hints that give nothing away, and questions made longer by one."""

import pytest

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.derived.hints import answer_texts, augment, gives_away, hint_ok, leaks

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


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        (Prompt("q", answer="Rom", gold="<answer>Rom</answer>"), ["Rom", "<answer>Rom</answer>"]),
        (Prompt("q", answer=12), ["12"]),
        (Prompt("q", answer=["1/2", "0.5"]), ["1/2", "0.5"]),
        (Prompt("q", answer=[3, 9, 4, 15], gold="3 + 9"), ["3 + 9"]),
        (Prompt("q", answer=True, gold=" "), []),
        (Prompt("q", answer={"a": 1}), []),
    ],
)
def test_what_says_an_answer(prompt, texts):
    assert answer_texts(prompt) == texts
    assert [gives_away(f"It is {text}.", prompt) for text in texts] == [True] * len(texts)
    assert not gives_away("Look closely.", prompt)


def test_a_question_shows_the_first_characters_of_its_solution():
    assert augment("P", GENERATION, "14", 0.5) == "P\n\n## Hint.\nFirst 3+4=7. Th"
    assert augment("P", GENERATION, "14", 0.25) == "P\n\n"
    assert augment("P", GENERATION, "15", 0.5) is None
    assert augment("P", "no thought, 14 and more", "14", 0.5).endswith("no thought,")
    # The hint would say the answer; a longer number is another one.
    assert augment("P", GENERATION, "14", 1.0) is None
    assert augment("P", "It is 140 and not 14.", "14", 0.6) == "P\n\n## Hint.It is 140 an"


@pytest.mark.parametrize(
    ("guidance", "leaking"),
    [
        ("Look at the parser and  A B c d e f G h of it.", True),
        ("a b c d e f g", False),
        ("b c d e f g h i", True),
        ("a b c d x e f g h", False),
        ("", False),
    ],
)
def test_guidance_leaks_with_eight_words_of_the_solution_in_a_row(guidance, leaking):
    assert leaks(guidance, "a b c d e f g h i") is leaking


def test_a_short_solution_leaks_as_a_whole_and_none_never():
    assert leaks("return x + 1 here", "return x") and not leaks("return y", "return x")
    assert not leaks("anything", "")
