"""The mathematics verifier as a check: two functions by name, in this process or in a pool."""

import pytest

from rlvr_jax.tasks import Prompt, Response, verifier
from rlvr_jax.verifiers import Check, examine

MATHS = Check("rlvr_jax.verifiers.maths:check", "rlvr_jax.verifiers.maths.extract:final_answer")


@pytest.mark.parametrize(
    ("gold", "response", "value", "stage"),
    [
        ("1/2", r"so \boxed{0.5}", 1, "exact"),
        ("1/2", r"so \boxed{0.6}", 0, "exact"),
        ("1/2", "so 0.5", 0, "no answer"),
        (r"2\sqrt3", r"\boxed{\sqrt{12}}", 1, "digits"),
        ("foo(", r"\boxed{1}", None, "gold"),
        (["foo(", "2"], r"\boxed{2}", 1, "exact"),
    ],
)
def test_a_finding_says_the_value_and_where_it_was_decided(gold, response, value, stage):
    found = examine(MATHS, response, gold)
    assert (found.outcome, found.stage) == (value, stage)


def test_options_reach_the_check_and_its_extract():
    lenient = Check(
        MATHS.check,
        MATHS.extract,
        options={"relative_tolerance": 0.1, "percent_is_number": True},
        reading={"boxes": "last", "answer_line": True},
    )
    assert examine(lenient, r"\boxed{7} \boxed{9.5}", "9.81").outcome == 1
    assert examine(lenient, "Answer: 50%", "50").outcome == 1


def test_a_task_grades_by_it():
    verify = verifier(MATHS, workers=1)
    grades = verify([Prompt("1/2 of 4?", "2")] * 2, [Response(r"\boxed{2.0}"), Response("3")])
    assert [grade.outcome for grade in grades] == [1, 0]
