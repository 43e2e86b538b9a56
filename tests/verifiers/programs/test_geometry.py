"""Geometry programs: constructions against known values, and what is no program."""

import math

import pytest

from rlvr_jax.verifiers.programs import geometry_formal
from rlvr_jax.verifiers.programs.expressions import Unreadable
from rlvr_jax.verifiers.programs.plane import Degenerate

ERRORS = (Unreadable, Degenerate, ArithmeticError, ValueError)
TRIANGLE = "A = point(0, 0)\nB = point(4, 0)\nC = point(1, 3)\n"


@pytest.mark.parametrize(
    ("answer", "wanted"),
    (
        ("distance(A, reflect(A, line(B, C)))", 4 * math.sqrt(2)),
        ("distance(C, line(A, B))", 3),
        ("area(A, B, C)", 6),
        ("area(A, B, point(4, 3), point(0, 3))", 12),
        ("angle(C, A, B)", math.degrees(math.atan2(3, 1))),
        ("angle(A, B, A)", 0),
        ("distance(A, intersect(line(A, C), line(B, point(4, 1))))", math.hypot(4, 12)),
        # A tangent meets once.
        ("distance(A, intersect(circle(A, 3), line(C, point(2, 3))))", 3),
        ("distance(A, intersect(circle(A, 1), circle(B, 3)))", 1),
        ("distance(A, intersect(circle(A, 1), circle(B, 3), 1))", 1),
        ("distance(A, B)^2 - -distance(A, B)/2^2", 17),
        ("distance(A, B)*sqrt(2)*pi", 4 * math.sqrt(2) * math.pi),
        ("-distance(A, B)^2", -16),
        ("2^distance(A, B)^0.5", 4),
    ),
)
def test_constructions_give_what_geometry_says(answer, wanted):
    assert geometry_formal.evaluate(f"{TRIANGLE}answer = {answer}") == pytest.approx(wanted)


@pytest.mark.parametrize(
    "answer",
    (
        "distance(A, intersect(circle(A, 3), circle(A, 3)))",
        "distance(A, intersect(line(A, B), line(B, A)))",
        "distance(A, intersect(circle(A, 3), line(A, B), 3))",
        "distance(A, intersect(circle(A, 3), line(A, B), 1.5))",
        "distance(A, circle(A, 3))",
        "distance(A)",
        "distance(A, B, C)",
        "circle(A, 0 - distance(A, B))",
        "distance(A, point(10^400, 0))",
        "distance(A, B)^10^10",
        "sqrt(0 - distance(A, B))",
        "(0 - distance(A, B))^0.5",
        "angle(A, A, B)",
        "5 distance(A, B)",
        "A + B",
        "pi = 3",
        "distance(A, B) if 1 else 2",
        "(" * 60 + "distance(A, B)" + ")" * 60,
        "-" * 900 + "distance(A, B)",
        "distance(A, B)" + " + 1" * 400,
        "__import__('os')",
    ),
)
def test_what_is_degenerate_or_no_expression_is_an_error(answer):
    with pytest.raises(ERRORS):
        geometry_formal.evaluate(f"{TRIANGLE}answer = {answer}")
    assert geometry_formal.check(f"{TRIANGLE}answer = {answer}", 5).stage == "error"


@pytest.mark.parametrize("program", ("", "# nothing", "A = point(0, 0)\n" * 300, "distance = 3"))
def test_what_is_no_program_is_an_error(program):
    assert geometry_formal.check(program, 5).stage == "error"


@pytest.mark.parametrize("gold", (None, "5", True, math.nan, math.inf))
def test_a_gold_that_is_no_number_is_no_verdict(gold):
    assert geometry_formal.check(f"{TRIANGLE}answer = distance(A, B)", gold).outcome is None


def test_a_gold_of_zero_is_met_absolutely():
    for shift, wanted in ((0.0009, 1), (0.0011, 0)):
        program = f"{TRIANGLE}answer = distance(A, B) - 4 + {shift}"
        assert geometry_formal.check(program, 0).outcome == wanted
