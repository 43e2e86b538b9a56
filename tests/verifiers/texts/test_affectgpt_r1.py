"""Lists of words: parts of the score, and the worked example."""

import pytest

from rlvr_jax.verifiers.texts.affectgpt_r1 import check, items

WHEEL = {"happy": "joy", "joyful": "joy", "glad": "joy", "sad": "sadness", "nervous": "fear"}
ROUNDING = 1e-12  # a few operations in float64


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Happy,  very   sad;\r\nglad", ["happy", "very sad", "glad"]),
        ("“happy”, 'happy', *happy*., HAPPY", ["happy"]),
        ("it's fine", ["it's fine"]),
        (",;\n", []),
        ("happy、sad", ["happy、sad"]),
    ],
)
def test_items_are_parted_and_cleaned(text, wanted):
    assert items(text) == wanted


def test_the_example_of_the_sheet():
    info = check("joyful, glad, sad", "happy, nervous", wheel=WHEEL, rate=0.1).info
    assert (info["precision"], info["recall"], info["f1"]) == (0.5, 0.5, 0.5)
    assert abs(info["reward"] - 0.4) < ROUNDING


def test_the_grade_is_f1_and_the_price_stands_beside_it():
    found = check("joyful, glad, sad", "happy, nervous", wheel=WHEEL, rate=0.2)
    assert found.outcome == 0.5 and abs(found.info["reward"] - 0.3) < ROUNDING
    assert found.answer == "joyful, glad, sad"


def test_fewer_words_than_the_reference_earn_nothing_more():
    assert check("a", "a, b, c").info["reward"] == 0.5


def test_without_a_wheel_words_are_themselves():
    assert check("joyful", "happy").outcome == 0
    assert check("Happy", "happy").outcome == 1
