"""What a response gives as its answer: boxes, phrases, lines, numbers, and thinking cut off."""

import pytest

from rlvr_jax.verifiers import MathVerifier
from rlvr_jax.verifiers.maths.extract import boxes, final_answer, spellings

N = 10**6  # characters: work that grows with the square of them takes hours


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "options", "answer"),
    [
        (rf"\boxed{{1{'.' * N}x}}", {}, f"1{'.' * N}x"),
        (rf"\boxed{{{chr(0x301) * N}{chr(0x316) * N}}}", {}, chr(0x301) * N + chr(0x316) * N),
        (r"\boxed{" + "1" * N + r"} \boxed{" + "1" * N + ".}", {}, None),
        (r"\boxed " * (N // 10), {}, None),
        ("answer" + " " * N + "?", {"choice": True}, None),
        ("answer is" + " :" + "*" * N + " (b)", {"choice": True}, "B"),
        ("answer" + "\n" * N + "?", {"answer_line": True}, None),
        ("\n" * N + "** The final answer: 5", {"answer_line": True}, "5"),
        ("1," * N, {"last_number": True}, "1," * (N - 1) + "1"),
        ("1 " * N, {"last_number": True}, "1"),
    ],
    ids=lambda value: ascii(value)[:12],
)
def test_an_answer_is_found_in_any_text(text, options, answer):
    assert final_answer(text, **options) == answer


def test_without_a_box_the_options_decide():
    text = "First 3.\nFinal answer: 5 \nBecause 7"
    assert final_answer(text) is None
    assert final_answer(text, answer_line=True) == "5"
    assert final_answer(text, last_number=True) == "7"
    assert final_answer("So\n$5$", answer_line=True) == "5"
    assert final_answer(r"\boxed{2}", require_think=True) is None
    assert final_answer(r"a</think>\boxed{2}", require_think=True) == "2"


def test_boxes_are_balanced():
    assert boxes(r"\boxed{\frac{1}{2}} and \fbox {a\}b}") == [r"\frac{1}{2}", r"a\}b"]
    assert boxes(r"\boxed{\boxed{3}}") == [r"\boxed{3}"]
    assert boxes(r"\boxed{1} \boxed{2") is None
    assert boxes("none") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\boxed5", ["5"]),
        (r"so \boxed 5.", ["5"]),
        (r"\(\boxed -1,234.5\)", ["-1,234.5"]),
        (r"with \boxed around it", []),
        (r"\boxed 5x", []),
        (r"\boxed 5/6", []),
        (r"\boxed 5 \sqrt 2", []),
        (r". . \boxed\frac{1", []),
    ],
)
def test_a_number_does_without_braces(text, found):
    assert boxes(text) == found


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"I put it within \boxed{}. \boxed{5}", "5"),
        (r"\boxed{ } \boxed{5}", "5"),
        (r"\boxed{}", None),
        (r"\boxed{1/2} is \boxed{\frac12}", r"\frac12"),
        (r"\boxed{1/2} is \boxed{0.5}", "0.5"),
        (r"\boxed{x=5} \boxed{5}", "5"),
        (r"\boxed{{3}} \boxed{3}", "3"),
        (r"\boxed{1/2} is \boxed{0.6}", None),
        (r"\boxed{1} \boxed{1.0} \boxed{2/2} \boxed{3/3} \boxed{4/4}", None),
    ],
)
def test_boxes_agree_if_their_values_do(response, answer):
    assert final_answer(response) == answer


def test_each_spelling_is_given_once():
    assert spellings(r"\boxed{\frac12} is \boxed{1/2} or \boxed{$\dfrac{1}{2}$}") == [
        r"$\dfrac{1}{2}$",
        "1/2",
    ]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"<think>\boxed{5}", None),
        (r"a</think> b <think>\boxed{5}", None),
        (r"<think>\boxed{4}</think>\boxed{5}", "5"),
        (r"\boxed{4}</think>\boxed{5}", "5"),
    ],
)
def test_thinking_that_does_not_end_has_no_answer(response, answer):
    assert final_answer(response) == answer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("it is −5", "−5"),
        ("it is -5.", "-5"),
        ("51-99", "99"),
        ("it is .5", ".5"),
        ("it is 1,234.5.", "1,234.5"),
        ("it is 3/4", "3/4"),
        (r"it is \frac{1}{2}", r"\frac{1}{2}"),
        (r"it is -\dfrac12.", r"-\dfrac12"),
        (r"it is 2\frac{1}{2}", r"2\frac{1}{2}"),
        (r"so x=\frac{1}{2}, or 3", "3"),
        ("none", None),
    ],
)
def test_the_last_number_is_whole(text, number):
    assert final_answer(text, last_number=True) == number


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("**Answer:** 5", "5"),
        ("Answer: **5**", "5"),
        ("**Answer: 5**", "5"),
        ("**Answer**: 5", "5"),
        ("### Final answer: x = 5", "x = 5"),
        ("Answer: **", None),
    ],
)
def test_an_answer_line_may_be_bold(text, answer):
    assert final_answer(text, answer_line=True) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer:\n13", "13"),
        ("**Answer:**\n$$13$$", "$$13$$"),
        ("Answer: 13<|im_end|>", "13"),
        ("Answer: `13`", "13"),
        ("The final answer is: 13", "13"),
        ("Answer： 13", "13"),
        ("So x=3.\nTherefore, the number of ways is $13$.", "13"),
        ("Thus the answer is **13**.", "13"),
        ("Final Answer: The final answer is $13$. I hope it is correct.", "13"),
        ("Answer: 13\n\nExplanation: because 5", "13"),
        ("The answer is not 13", "not 13"),
        ("We get $5$ and $6$.", None),
        ("Answer:", None),
    ],
)
def test_an_answer_line_is_read_in_many_forms(text, answer):
    assert final_answer(text, answer_line=True) == answer
    assert final_answer(text) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed\frac12", r"\frac12"),
        (r"\boxed\dfrac{1}{2}.", r"\dfrac{1}{2}"),
        (r"\boxed\sqrt3", r"\sqrt3"),
        (r"\boxed\pi", r"\pi"),
        (r"\boxed\text{yes}", r"\text{yes}"),
        (r"\boxed\frac12 x", r"\frac12"),
        (r"\boxed\frac12x", None),
        (r"\boxed\frac", None),
    ],
)
def test_a_command_does_without_braces(text, answer):
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("boxes", "correct"),
    [
        ("each", [False, False, False]),
        ("last", [False, False, True]),
        ("joined", [True, True, False]),
    ],
)
def test_several_boxes_are_each_right_joined_or_the_last_counts(boxes, correct):
    texts = [r"\boxed{-2} and \boxed{1}", r"\boxed{1}, \boxed{-2}", r"\boxed{3}, \boxed{1,-2}"]
    with MathVerifier(boxes=boxes) as verifier:
        verdicts = verifier.grade(["1,-2"] * 3, texts)
        assert verifier.grade(["5"], [r"\boxed{5} is \boxed{5.0}"])[0].outcome
    assert [verdict.outcome for verdict in verdicts] == correct


def test_an_unknown_reading_of_boxes_is_refused():
    with pytest.raises(ValueError, match="boxes must be one of each, joined, last, got 'first'"):
        MathVerifier(boxes="first")


@pytest.mark.parametrize(
    ("response", "right"),
    [
        (r"\boxed{C. 5}", "C"),
        (r"\boxed{\textbf{(C)}\ 5}", "C"),
        ("\\boxed{5}\n**Answer: C**", "C"),
        (r"\boxed{ACD}", "A, C, D"),
        (r"\boxed{A, C, D}", "ACD"),
        (r"\boxed{D, A \text{ and } C}", "ACD"),
        ("Answer: A, C", "AC"),
        (r"\boxed{c}", "C"),
    ],
)
def test_options_are_letters_in_any_order(response, right):
    golds = ["C", "ACD", "AC", "D"]
    with MathVerifier(choice=True) as verifier:
        verdicts = verifier.grade([right, *golds], [response] * 5)
    assert [verdict.outcome for verdict in verdicts] == [
        True,
        *(set(gold) == set(right) - set(", ") for gold in golds),
    ]
