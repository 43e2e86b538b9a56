"""Linear programs: how their texts are read, and whose optimum is right."""

import math

import pytest

from rlvr_jax.verifiers.programs import sirl_solver
from rlvr_jax.verifiers.programs.expressions import Unreadable
from rlvr_jax.verifiers.programs.linear_program import read_lp

INFINITE = math.inf


def test_all_sections_are_read():
    program = read_lp(
        r"""\ a plan
        Maximize
          profit: 3 x + 2*y - z + 4   \ with a constant
        Subject To
          wood: x + y <= 4
          2 x + y >= 1 - y
          span: 1 <= x - y
            <= 3
        Bounds
          0 <= x <= 3
          y free
          -2 <= w
        General
          x, w
        Binary
          z
        End"""
    )
    assert program.maximize
    assert (program.cost, program.offset) == ({"x": 3, "y": 2, "z": -1}, 4)
    assert program.rows == [
        ({"x": 1, "y": 1}, -INFINITE, 4),
        ({"x": 2, "y": 2}, 1, INFINITE),
        ({"x": 1, "y": -1}, 1, 3),
    ]
    assert program.low == {"x": 0, "y": -INFINITE, "w": -2, "z": 0}
    assert program.high == {"x": 3, "y": INFINITE, "z": 1}
    assert program.whole == {"x", "w", "z"}


def test_a_constraint_ends_with_its_line_and_a_sum_goes_on():
    program = read_lp("max: x\nst\nx + y >= 2\ny <= 3\n- x\n + y <= 5\n3 <= x")
    assert [row for row, _, _ in program.rows] == [
        {"x": 1, "y": 1},
        {"y": 1},
        {"x": -1, "y": 1},
        {"x": -1},
    ]


@pytest.mark.parametrize(
    "text",
    (
        "",
        "x <= 3",
        "Maximize x * y",
        "Maximize",
        "Maximize 865\nSubject To\n 1 <= 2\nEnd",
        "Maximize 2 3",
        "Maximize x\nSubject To\n x ** 2 <= 3",
        "Maximize x\nSubject To\n x^2 <= 3",
        "Maximize x\nSubject To\n x",
        "Maximize x\nSubject To\n x <= 3 >= 1",
        "Maximize x\nSubject To\n x + <= 3",
        "Maximize x\nBounds\n x + y <= 3",
        "Maximize x\nBounds\n 1 <= 2",
        "Maximize x\nGeneral\n 3",
        "Maximize x\nEnd\nx",
        "Maximize x\nMinimize y",
        "Maximize 1e99 x",
        "Maximize x\nSubject To\n __import__('os').system('x') <= 1",
        "Maximize " + " + ".join(f"x{i}" for i in range(1001)),
        "Maximize x" + "\n" * 100_001,
    ),
)
def test_what_is_no_linear_program_is_refused(text):
    with pytest.raises(Unreadable):
        read_lp(text)


CASES = (
    ("max: 3x + 2y\nst\nx + y <= 4\nx + 3y <= 6\nx <= 3", 11, 1),
    ("max: 3x + 2y\nst\nx + y <= 4\nx + 3y <= 6\nx <= 3", 10, 0),
    ("min: x\nst\nx >= 2.5\nint x", 3, 1),
    ("min: x\nst\nx >= 2.5", 3, 0),
    ("min: x + 7\nst\nx >= 1", 8, 1),
    ("min: 3", 3, 0),  # a number is no model
    ("min: x + 3", 3, 1),
    ("max: 0 x\nst\nx <= 1", 0, 1),
    ("max: 0.00001 x\nst\nx <= 1", 1, 0),
    ("max: x\nst\nx <= 1\nx >= 2", "infeasible", 1),
    ("max: x\nst\nx >= 2", "infeasible", 0),
    ("max: x\nst\nx >= 2", "unbounded", 1),
    ("max: x\nst\nx >= 2", 5, 0),
    ("min: x\nbounds\nx >= 5\nx <= 3", "infeasible", 1),
    ("min: x\nbounds\nx <= -3", "unbounded", 1),
    ("nonsense", 3, 0),
    ("max: x\nst\nx <= 1", "many", None),
    ("max: x\nst\nx <= 1", True, None),
)


@pytest.mark.parametrize(("model", "objective", "wanted"), CASES)
def test_the_optimum_has_to_be_the_gold_ones(model, objective, wanted):
    pytest.importorskip("highspy", reason="the package highspy is not installed")
    assert sirl_solver.check(model, {"objective": objective}).outcome == wanted


def test_values_of_variables_are_counted_and_do_not_decide():
    pytest.importorskip("highspy", reason="the package highspy is not installed")
    model = "max: x + y\nst\nx + y <= 4\nx <= 3\nx >= 3"
    finding = sirl_solver.check(model, {"objective": 4, "values": [1, 2]})
    assert (finding.outcome, finding.info["values_hit"]) == (1.0, 0.5)


def test_without_the_solver_there_is_no_verdict(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    found = sirl_solver.check("max: x\nst\nx <= 1", {"objective": 1})
    assert (found.outcome, found.stage) == (None, "no solver")
