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


@pytest.mark.parametrize(("rate", "reward"), [(0.1, 0.4), (0.2, 0.3)])
def test_the_grade_is_f1_and_the_price_stands_beside_it(rate, reward):
    """The example of the sheet."""
    found = check("joyful, glad, sad", "happy, nervous", wheel=WHEEL, rate=rate)
    assert (found.answer, found.outcome) == ("joyful, glad, sad", 0.5)
    assert [found.info[name] for name in ("precision", "recall", "f1")] == [0.5, 0.5, 0.5]
    assert abs(found.info["reward"] - reward) < ROUNDING


@pytest.mark.parametrize(
    ("answer", "gold", "reward"),
    [("a", "a, b, c", 0.5), ("joyful", "happy", 0.0), ("Happy", "happy", 1.0)],
)
def test_without_a_wheel_words_are_themselves_and_a_missing_one_has_no_price(answer, gold, reward):
    found = check(answer, gold)
    assert (found.outcome, found.info["reward"]) == (reward, reward)
