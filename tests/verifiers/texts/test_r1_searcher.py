"""R1-Searcher's rewards: the worked example, and each rule by itself."""

import pytest

from rlvr_jax.verifiers.texts.r1_searcher import (
    BEGIN,
    DOCUMENTS,
    DOCUMENTS_END,
    END,
    stage1_reward,
    stage2,
    stage2_reward,
)
from rlvr_jax.verifiers.texts.short_answers import check, f1

A = "so.</think><answer>The Eiffel Tower</answer>"
R = f"{BEGIN}tower{END}\n{DOCUMENTS}\n(1) It stands in Paris.\n{DOCUMENTS_END}\n\n"


@pytest.mark.parametrize(
    ("text", "gold", "first", "second"),
    [
        (A, "Eiffel tower Paris", -0.5, 0.8),
        (R + A, "Eiffel tower Paris", 0.0, 0.8),
        ("<think>" + A, "Eiffel tower Paris", -1.0, -1.2),
        (A, "Eiffel tower", 1.5, 1.0),
        (R + A, "Eiffel tower", 2.0, 1.0),
        ("no tags at all", "Eiffel tower", -1.0, -2.0),
    ],
)
def test_the_worked_example(text, gold, first, second):
    assert stage1_reward(text, gold) == pytest.approx(first)
    assert stage2_reward(text, gold) == pytest.approx(second)


@pytest.mark.parametrize(
    ("answer", "gold", "value"), [("True", "yes", 1), ("yes", "Paris", 0), ("", "Paris", 0)]
)
def test_f1_of_short_answers(answer, gold, value):
    assert f1(answer, gold) == value


@pytest.mark.parametrize(
    "text",
    [
        R.replace(END, "") + A,
        R.replace("(1)", "1.") + A,
        A + " Assistant",
        "assistant " + A,
        A.replace("The", BEGIN + "The"),
        A.replace("The", "The " * 10),
        A.replace("so", "好"),
        A + A,
        A.replace("</think>", ""),
    ],
)
def test_a_broken_rule_costs_two(text):
    right = "Eiffel tower"
    assert stage2_reward(text, right) <= stage2(text, right).outcome - 2 + 1e-9


def test_documents_may_be_in_any_language():
    assert stage2_reward(R.replace("It stands", "铁塔") + A, "Eiffel tower") == 1.0


def test_answers_are_equal_in_normal_form():
    assert check("the Eiffel_Tower!", "eiffel tower") == 1
    assert check("", "") == check("Eiffel", "Eiffel tower") == 0
