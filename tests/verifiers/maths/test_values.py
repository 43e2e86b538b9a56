"""Values of each kind: numbers and their digits, lists, sets, groups, matrices, units."""

import pytest

from rlvr_jax.verifiers import MathVerifier
from rlvr_jax.verifiers.maths.units import split_unit

A = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"
TRANSPOSED = r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"
RIGHT = [
    # logarithms with a base
    ("3", r"\log_2 8"),
    (r"\log_2 5", r"\log_{2} 5"),
    (r"\log_2 5", r"\log_2{5}"),
    (r"\log_2 5", r"\log_25"),
    (r"\log_2 5", r"\frac{\ln 5}{\ln 2}"),
    # matrices
    (A + "^T", TRANSPOSED),
    (A, TRANSPOSED + "^T"),
    ("(1,2)", r"\begin{pmatrix}1&2\end{pmatrix}^T"),
    ("-2", r"\begin{vmatrix}1&2\\3&4\end{vmatrix}"),
    (rf"\frac12{A}", r"\begin{pmatrix}1/2&1\\3/2&2\end{pmatrix}"),
    # lists count, sets do not
    ("1,1,2", "2,1,1"),
    (r"\{1,2\}", "1,2,2"),
    ("1, 2", r"\{2,1\}"),
    (r"\sqrt2, \sqrt2, 1", r"2^{1/2}, 1, \sqrt2"),
    # braces group in an answer
    ("3", "{3}"),
    ("3", "{{3}}"),
    (r"2\sqrt2", r"{2\sqrt2}"),
    ("1/2", r"{1 \over 2}"),
    ("{3}", r"\{3\}"),
    ("{3}", "{3}"),
    # units
    ("6 inches", "6 in"),
    ("6 ft", "6 feet"),
    ("2 hours", "2 h"),
    ("2 seconds", "2 s"),
    ("2 minutes", "2 min"),
    ("6 pounds", "6 lbs"),
    ("10 cm", "10 centimeters"),
    ("10", "10cm"),
    ("25 square meters", r"25 \text{ m}^2"),
    ("60 mph", "60 miles per hour"),
    (r"2\sqrt3 \text{ cm}", r"\sqrt{12} \text{ centimeters}"),
    (r"2\sqrt3", r"2\sqrt{3} \text{ cm}"),
    (r"\$5", "5 dollars"),
    ("5", r"\$5.00"),
    (r"\$1,000", "1000"),
    ("15", r"\$10 + \$5"),
    ("10", "10 people"),
    # decimals
    ("0.5", "0.5000001"),
    ("1234567.00", "1234567.004"),
    ("1/2", r"\boxed{0.5}"),
    ("a_{11}", "a_{11}"),
    ("C(n,k)", "C(n, k)"),
]
WRONG = [
    ("3.14", "x"),
    ("0.333", r"\frac{x}{3}"),
    (A + "^T", A),
    (A, A + "^T"),
    (A, r"\begin{vmatrix}1&2\\3&4\end{vmatrix}"),
    (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", A),
    (r"\begin{pmatrix}1&2&3\\4&5&6\end{pmatrix}", r"\begin{pmatrix}1&2\\3&4\\5&6\end{pmatrix}"),
    (r"\begin{pmatrix}1&2&3\\4&5&6\end{pmatrix}", r"\begin{pmatrix}1&2&3&4\\5&6\end{pmatrix}"),
    ("1,1,2", "1,2,2"),
    ("3,3,3", "3,3"),
    (r"\sqrt2, \sqrt2, 1", r"\sqrt2, 1, 1"),
    ("{3}", "3"),
    ("3", r"\{3\}"),
    (r"\$5", "5 cents"),
    ("5 cents", r"\$5"),
    ("10 m", "10 cm"),
    (r"2\sqrt3 \text{ cm}", r"2\sqrt3 \text{ m}"),
    ("10", "10 million"),
    ("5", "5t"),
    ("5t", "5"),
    ("x+3t", "x+3"),
    (r"\pi r^2 h", r"\pi r^2"),
    ("1234567.00", "1234568"),
    ("10", "a_{11}"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("gold", "answer"), RIGHT)
def test_equal_values_are_equal(judge, gold, answer):
    assert judge(gold, answer) == 1


@pytest.mark.parametrize(("gold", "answer"), WRONG)
def test_different_values_differ(judge, gold, answer):
    assert judge(gold, answer) == 0


@pytest.mark.parametrize(
    ("responses", "correct"),
    [
        (r"\boxed{\sqrt8}, that is \boxed{2\sqrt2}", True),
        (r"\boxed{\sqrt8 \text{ cm}}, that is \boxed{2\sqrt2}", True),
        (r"\boxed{\sqrt8} or \boxed{3\sqrt2}", False),
    ],
)
def test_each_of_several_boxes_has_to_be_right(verifier, responses, correct):
    assert verifier.grade([r"2\sqrt2"], [responses])[0].outcome == correct


def test_a_tolerance_that_is_given_holds_whatever_the_digits():
    with MathVerifier(relative_tolerance=0.05) as verifier:
        verdicts = verifier.grade(["9.81"] * 2, [r"\boxed{9.5}", r"\boxed{9}"])
    assert [verdict.outcome for verdict in verdicts] == [True, False]


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("25 square meters", ("25", "m^2")),
        ("25 m^{2}", ("25", "m^2")),
        ("9.8 meters per second^{2}", ("9.8", "m/s^2")),
        ("3 sq. ft", ("3", "ft^2")),
        ("5cm", ("5", "cm")),
        ("5m", ("5m", "")),
        ("xcm", ("xcm", "")),
        ("5 million", ("5 million", "")),
        ("50%", ("50", "%")),
        ("", ("", "")),
    ],
)
def test_a_unit_is_split_off(text, split):
    assert split_unit(text) == split
