"""Lists of words: parts of the score, and the worked example."""

import pytest

from rlvr_jax.verifiers.texts.affectgpt_r1 import check, clusters, items, listed, set_scores

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
    answer, reference = items("joyful, glad, sad"), items("happy, nervous")
    assert clusters(answer, WHEEL) == {"joy", "sadness"}
    precision, recall, f1 = set_scores(clusters(answer, WHEEL), clusters(reference, WHEEL))
    assert (precision, recall, f1) == (0.5, 0.5, 0.5)
    assert abs(listed(f1, len(answer), len(reference), rate=0.1) - 0.4) < ROUNDING


def test_the_grade_is_f1_and_the_price_stands_beside_it():
    found = check("joyful, glad, sad", "happy, nervous", wheel=WHEEL, rate=0.2)
    assert found.value == 0.5 and abs(found.info["reward"] - 0.3) < ROUNDING
    assert found.answer == "joyful, glad, sad"


def test_fewer_words_than_the_reference_earn_nothing_more():
    assert listed(0.5, 1, 3) == 0.5


def test_without_a_wheel_words_are_themselves():
    assert check("joyful", "happy").value == 0
    assert check("Happy", "happy").value == 1
