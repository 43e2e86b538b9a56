"""Worlds of programs: what is read of a text, and that values are compared as values."""

from random import Random

import pytest

from rlvr_jax.tasks import load
from rlvr_jax.tasks.base import Response
from rlvr_jax.tasks.worlds.expressions import EXPRESSIONS, expressions, random_program, value_of
from rlvr_jax.tasks.worlds.triplets import (
    KINDS,
    Triplet,
    graded_proposal,
    propose_prompt,
    solve_prompt,
    split,
    verify_in,
)

DOUBLE = Triplet("x * 2 + 1", (3, 5, 1, 0), (7, 11, 3, 1))
grade_all = verify_in(EXPRESSIONS)


def graded(prompt, *texts):
    return [g.outcome for g in grade_all([prompt] * len(texts), [Response(t) for t in texts])]


@pytest.mark.parametrize(
    ("text", "x", "value"),
    [
        ("x * 2 + 1", 3, 7),
        ("( x + 1 ) * 2", 3, 8),
        ("9 - x - 2", 3, 4),
        ("x - 4", 3, None),
        ("x * x", 10, None),
        ("x +", 3, None),
        ("( x", 3, None),
        ("x ) + 1", 3, None),
        ("x x", 3, None),
        ("", 3, None),
        ("( " * 500 + "x", 3, None),
    ],
)
def test_an_expression_comes_to_a_number_within_its_range(text, x, value):
    assert value_of(text.split(), x) == value


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("deduction", ["7", " 7 "], ["8", "", "7 7", "3 + 4", "1) or (True"]),
        ("abduction", ["3"], ["7", "x", "99"]),
        ("induction", ["x * 2 + 1", "1 + x + x"], ["x + 4", "7", "( x", "x * 2 + 1 + 1 + 1 + 1"]),
    ],
)
def test_answers_are_compared_as_values(kind, right, wrong):
    prompt = solve_prompt(EXPRESSIONS, kind, DOUBLE)
    assert graded(prompt, *right) == [1] * len(right)
    assert graded(prompt, *wrong) == [0] * len(wrong)


def test_an_induction_is_tried_on_pairs_that_it_did_not_show():
    shown, hidden = split("induction", DOUBLE)
    assert shown.inputs == (3, 5) and hidden.inputs == (1, 0)
    prompt = solve_prompt(EXPRESSIONS, "induction", DOUBLE)
    assert prompt.text == "def 3 ; 7 | 5 ; 11 >"
    # Right on what is shown, wrong on what is not.
    overfit = Triplet("x + 4", (3, 5), (7, 9))
    told = solve_prompt(EXPRESSIONS, "induction", overfit)
    assert graded(told, "x + x + 1") == [0]


@pytest.mark.parametrize(
    ("kind", "text", "valid"),
    [
        ("deduction", "x + 2 ; 5", 1),
        ("deduction", "x * 2 + 1 ; 3", 0),  # the reference
        ("deduction", "x * 2 + 1 ; 4", 1),
        ("deduction", "x + 2 ; 5 6", 0),
        ("deduction", "x - 9 ; 5", 0),
        ("deduction", "7 ; 5", 0),
        ("deduction", "x + 2", 0),
        ("induction", "x + 2 ; 5 6", 1),
        ("induction", "x + 2 ; 5", 0),
        ("induction", "x + 2 ; 5 5", 0),
        ("induction", "x + 2 ; 5 six", 0),
    ],
)
def test_a_proposal_is_a_program_that_runs_and_is_new(kind, text, valid):
    number = 4 if kind == "induction" else 1
    known = Triplet(DOUBLE.program, DOUBLE.inputs[:number], DOUBLE.outputs[:number])
    prompt = propose_prompt(EXPRESSIONS, kind, [known])
    assert graded(prompt, text) == [valid]
    cut = grade_all([prompt], [Response(text, truncated=True)])[0]
    assert cut.outcome == 0


def test_random_programs_are_allowed_and_their_questions_of_all_kinds():
    task = expressions(size=30, test_size=6)
    assert {prompt.kind for prompt in task.train} == set(KINDS)
    random = Random(0)
    for _ in range(50):
        triplet = random_program(random, 3)
        words = triplet.program.split()
        assert [value_of(words, x) for x in triplet.inputs] == list(triplet.outputs)
        assert Triplet.of(triplet.text()) == triplet


def test_python_functions_run_in_the_sandbox_and_values_keep_their_types():
    task = load("python_functions")
    by_kind = {prompt.kind: prompt for prompt in task.train[3:6]}  # x * 2 + 1
    world, code = task.world, "def f(x):\n    return x + x + 1"

    def fenced(name, text):
        return f"```{name}\n{text}\n```"

    asked = [by_kind["deduction"]] * 3 + [by_kind["abduction"]] * 2 + [by_kind["induction"]] * 2
    texts = [
        *(fenced("output", "7"), fenced("output", "7.0"), "7"),
        *(fenced("input", "3"), fenced("input", "1) or (True")),
        *(fenced("python", code), fenced("python", "def f(x):\n    return 7")),
    ]
    grades = task.verify(asked, [Response(text) for text in texts])
    assert [grade.outcome for grade in grades] == [1, 0, 0, 1, 0, 1, 0]
    assert [grade.info["readable"] for grade in grades] == [1, 1, 0, 1, 0, 1, 1]
    prompt = propose_prompt(world, "deduction", [world.first])
    proposals = [
        fenced("python", code) + fenced("input", "[1]"),
        fenced("python", "def f(x):\n    return x") + fenced("input", '"other"'),
        fenced("python", "import random\ndef f(x):\n    return random.random()")
        + fenced("input", "1"),
        fenced("python", "def f(x):\n    raise ValueError") + fenced("input", "1"),
        fenced("python", "def f(x):\n    return {1}") + fenced("input", "1"),
    ]
    proposals += [
        fenced("python", f"def f(x):\n    return {by_another_way}") + fenced("input", "1")
        for by_another_way in ("__import__('datetime').date.today().year", "eval('x')", "hash('a')")
    ]
    told = task.verify([prompt] * len(proposals), [Response(text) for text in proposals])
    assert [grade.outcome for grade in told] == [0, 1, 0, 0, 0, 0, 0, 0]
    assert graded_proposal(prompt, told[1]) == Triplet(world.first.program, ("other",), ("other",))
    assert graded_proposal(prompt, told[0]) is None
    inputs = [fenced("input", "1") + fenced("input", value) for value in ("1", "2")]
    found = [world.read_proposal("induction", fenced("python", code) + two) for two in inputs]
    assert found[0] is None and found[1][1] == [1, 2]
