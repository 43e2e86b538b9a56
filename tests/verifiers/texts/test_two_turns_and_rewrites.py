"""A comparison in two turns, and a rubric that is rewritten."""

import pytest

from rlvr_jax.verifiers.texts.br_rm import RETHINK, present, two_turns
from rlvr_jax.verifiers.texts.meta_policy import (
    ANALYSE,
    MERGE,
    Item,
    Rubric,
    Sample,
    evolve,
    fraction_of_points,
    read_items,
    sum_of_points,
)

PRINTED = 2e-6
"""As many digits as the examples print."""


def test_a_pair_is_shown_in_an_order_of_its_own_and_its_label_turns_with_it():
    shown = [present(("good", "bad"), "1", [3, number]) for number in range(200)]
    assert shown == [present(("good", "bad"), "1", [3, number]) for number in range(200)]
    assert {one[:2] for one in shown} == {("good", "bad"), ("bad", "good")}
    assert all(one[int(one[2]) - 1] == "good" for one in shown)
    assert 70 < sum(one[2] == "1" for one in shown) < 130
    assert present(("bad", "good"), "2", [1]) in [("bad", "good", "2"), ("good", "bad", "1")]


def test_the_turns_of_a_conversation_are_the_texts_around_the_request():
    assert two_turns(f"one {RETHINK} two") == ("one ", " two")
    assert two_turns("one, and no request") == ("one, and no request", "")
    # A judge that writes the request itself has no turn of its own more.
    assert two_turns(f"one {RETHINK} mine {RETHINK} two") == ("one ", " two")


RUBRIC = Rubric((Item("Is it clear?", 5), Item("Is it short?", 5)))


def test_a_rewritten_rubric_pays_longer_ones_more_by_the_sum_alone():
    told = []

    def reply(text):
        if text.startswith(MERGE):
            return "Here it is.\n- 5: Is it clear?\n5: Is it short?\n10 : Is it true?\nEnjoy!"
        return "It likes flattery." if text.endswith(ANALYSE) else "5: Is it clear?"

    def meta(texts):
        told.extend(texts)
        return [reply(text) for text in texts]

    samples = [Sample("say", f"answer {number}", ("Fine.\n4", "3")) for number in range(2)]
    new, taken = evolve(RUBRIC, samples, meta)
    assert taken and new == Rubric((*RUBRIC.items, Item("Is it true?", 10)), 1)
    # Two questions of each sample, and one of all.
    assert len(told) == 5 and "answer 1" in told[1] and "It likes flattery." in told[3]
    before, after = (4, 3), (4, 3, 2)
    maxima = [tuple(item.maximum for item in rubric.items) for rubric in (RUBRIC, new)]
    assert (sum_of_points(before, maxima[0]), sum_of_points(after, maxima[1])) == (7, 9)
    assert fraction_of_points(before, maxima[0]) == pytest.approx(0.7)
    assert fraction_of_points(after, maxima[1]) == pytest.approx(0.533333, abs=PRINTED)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot.",
        "5: a\n3: a",
        "0: a",
        "\n".join(f"5: item {number}" for number in range(21)),
        "5: " + "word " * 300,
        "1234567: a",
    ],
)
def test_a_reply_that_makes_no_rubric_leaves_the_old_one(reply):
    assert evolve(RUBRIC, [], lambda texts: [reply for _ in texts]) == (RUBRIC, False)


def test_items_are_read_line_by_line():
    assert read_items("1. first\n* 3: third: b\n: none\n4:") == [Item("third: b", 3)]
