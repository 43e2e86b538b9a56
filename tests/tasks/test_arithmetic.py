"""Small questions: which are asked, which are held out, and the last number of an answer."""

from fractions import Fraction

import pytest

from rlvr_jax.tasks import Prompt, Response, load
from rlvr_jax.tasks.sums.arithmetic import last_number


def prompts(task):
    return [*task.train, *task.test]


def test_easy_questions_are_all_small_products_and_sums():
    products = {f"What is {a} times {b}?": a * b for a in range(2, 10) for b in range(2, 10)}
    sums = {f"What is {a} + {b}?": a + b for a in range(2, 21) for b in range(2, 21)}
    asked = {p.text: p.answer for p in prompts(load("arithmetic"))}
    assert asked == products | sums


def test_hard_questions_are_small_and_two_digit_sums():
    task = load("arithmetic", questions="hard")
    assert {p.kind for p in task.train} == {"sum", "two_digit_sum"}
    assert len(prompts(task)) == len({p.text for p in prompts(task)})
    asked = {p.text: p.answer for p in prompts(task) if p.kind == "two_digit_sum"}
    assert asked["What is 51 + 99?"] == 150
    assert "What is 12 + 15?" not in asked


@pytest.mark.parametrize("questions", ("easy", "hard"))
def test_a_fifth_of_the_unordered_pairs_of_each_kind_is_held_out(questions):
    task = load("arithmetic", questions=questions)
    pairs = [
        {(p.kind, *sorted(map(int, p.text.rstrip("?").split()[2::2]))) for p in split}
        for split in (task.train, task.test)
    ]
    assert not pairs[0] & pairs[1]
    for kind in task.mixture:
        sizes = [sum(pair[0] == kind for pair in split) for split in pairs]
        assert sizes[1] == round(0.2 * sum(sizes))


def test_kinds_are_half_and_half():
    assert load("arithmetic").mixture == {"product": 0.5, "sum": 0.5}


def test_every_gold_is_right_and_every_other_number_wrong():
    task = load("arithmetic")
    for change, wanted in ((0, 1), (1, 0), (-1, 0)):
        answers = [Response(f"It is {prompt.answer + change}.") for prompt in task.train]
        assert {grade.outcome for grade in task.verify(task.train, answers)} == {wanted}
    golds = [Response(prompt.gold) for prompt in task.train]
    assert {grade.outcome for grade in task.verify(task.train, golds)} == {1}


@pytest.mark.parametrize(
    ("text", "wanted"),
    (
        ("7 times 8 is 56.", 56),
        ("56.0", 56),
        ("1,234", 1234),
        ("4, 5", 5),
        ("1,23", 23),
        ("half is .5", Fraction(1, 2)),
        ("= -27", -27),
        ("= −27", -27),
        ("51-99", 99),
        ("x = 3 (or 4)", 4),
        ("9" * 5000, None),
        ("none", None),
        ("", None),
        ("٣", None),
    ),
)
def test_the_last_number_of_a_text(text, wanted):
    assert last_number(text) == wanted


def test_a_cut_off_answer_counts_if_its_last_number_is_right():
    task = load("arithmetic")
    prompt = Prompt("What is 7 times 8?", answer=56)
    assert task.verify([prompt], [Response("It is 56, as", truncated=True)])[0].outcome == 1


def test_grades_tell_the_answer_and_whether_it_ended():
    task = load("arithmetic")
    prompt = Prompt("What is 7 times 8?", answer=56)
    responses = [Response("It is 56.0."), Response("I think 5", truncated=True), Response("Well.")]
    grades = task.verify([prompt] * 3, responses)
    assert [grade.answer for grade in grades] == ["56", "5", None]
    assert [grade.info["ended"] for grade in grades] == [1, 0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    (
        ({"questions": "medium"}, "questions must be one of 'easy', 'hard', got 'medium'"),
        ({"max_factor": 2}, "max_factor must be at least 3, got 2"),
        ({"max_term": 1}, "max_term must be at least 3, got 1"),
        ({"held_out": 1.0}, r"held_out must be in \(0, 1\), got 1.0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"questions": "hard", "max_term": 99}, "max_term must be below 99"),
    ),
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=f"arithmetic: {message}"):
        load("arithmetic", **options)


def test_solutions_are_golds_and_levels_count_digits():
    for prompt in prompts(load("arithmetic", questions="hard")):
        assert "".join(prompt.solution) == prompt.gold
        digits = sum(map(str.isdigit, prompt.text))
        assert prompt.meta == {"level": digits - 1}
