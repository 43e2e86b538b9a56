"""Symbolic regression: what is read as an equation, and what its fit is worth."""

import numpy as np
import pytest

from rlvr_jax.verifiers.programs import symbolic_regression

TOLERANCE = 1e-3  # of a fit by at most 200 evaluations
X = np.linspace(1.0, 3.0, 12)
LINE = {
    "x_train": X[:, None].tolist(),
    "y_train": (2 * X + 1).tolist(),
    "x_test": [[4.0], [5.0]],
    "y_test": [9.0, 11.0],
}


@pytest.mark.parametrize(
    "equation",
    (
        "1 + x1 * 2",
        "c3 + c1 * x1",
        "(c1 * (x1 + c2))",
        "x1 ÷ 0.5 + 1",
        "2 × x1 − -1",
        "sqrt(4 * x1 ^ 2) + x_1 ** (0)",
        "4 * x1^-1 * x1^2 / 2 + 1.0e0",
        "2*x1 + exp(c1 * 0)",
        "-(-2*x1) + cos(0)",
    ),
)
def test_equations_of_the_line_earn_everything(equation):
    assert symbolic_regression.check(equation, LINE).outcome == pytest.approx(1, abs=TOLERANCE)


@pytest.mark.parametrize(
    "equation",
    (
        "x1 +",
        "sin x1",
        "tan(x1)",
        "x0",
        "x01",
        "x_2",
        "c0",
        "c1_",
        "x1^c1",
        "x1^(1+1)",
        "x1^2^2",
        "x1^10.5",
        "sin(x1, 2)",
        "1e400",
        "x1;x1",
        "y = 2*x1 + 1",
        "x1 if x1 else 1",
        "2 x1",
        "(" * 51 + "x1" + ")" * 51,
        "x1" + " + 0" * 200,
    ),
)
def test_what_is_no_equation_of_the_grammar_earns_nothing(equation):
    finding = symbolic_regression.check(equation, LINE)
    assert (finding.outcome, finding.stage) == (0, "grammar")


@pytest.mark.parametrize("equation", ("1/(x1 - 4)", "log(0 - x1)", "exp(exp(exp(x1)))", "10^10^10"))
def test_predictions_that_are_not_finite_earn_nothing(equation):
    assert symbolic_regression.check(equation, LINE).outcome == 0


@pytest.mark.parametrize(
    "change",
    (
        {"y_test": [0.0, 0.0]},
        {"y_test": [1.0]},
        {"x_test": [[1.0, 2.0], [1.0, 2.0]]},
        {"x_train": []},
        {"y_train": ["a"] * 12},
        {"y_train": [np.nan] * 12},
    ),
)
def test_data_that_do_not_fit_together_are_no_verdict(change):
    assert symbolic_regression.check("x1", {**LINE, **change}).outcome is None


def test_targets_of_zero_are_left_out():
    data = {**LINE, "x_test": [[4.0], [-0.5]], "y_test": [9.0, 0.0]}
    assert symbolic_regression.check("2.0000002*x1 + 1", data).outcome == 1


def test_the_answer_stands_in_its_tag():
    assert symbolic_regression.extract("<think>x</think>so <answer> c1*x1 </answer>.") == "c1*x1"
    assert symbolic_regression.extract("c1*x1") is None
