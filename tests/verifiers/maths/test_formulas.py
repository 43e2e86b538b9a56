"""Formulas: what is read, what it is worth, and when two are the same without a worker."""

from fractions import Fraction

import pytest

from rlvr_jax.verifiers.maths.algebra import equal_expressions
from rlvr_jax.verifiers.maths.formulas.identity import proportional, same, worked_out
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import free_symbols
from rlvr_jax.verifiers.maths.notation import normalise

DOUBLE = 1e-12  # a few operations in double precision


def tree(text):
    return read_formula(normalise(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2+3*4", 14),
        ("2(3)(4)", 24),
        (r"2\frac12", Fraction(5, 2)),
        (r"3\cdot-2", -6),
        ("-3^2", -9),
        ("2^3^2", 512),
        ("6/2/3", 1),
        (r"\frac{1}{2}/\frac{1}{3}", Fraction(3, 2)),
        ("5!", 120),
        (r"{5 \choose 2}", 10),
        (r"{1 \over 4}", Fraction(1, 4)),
        (r"\sqrt{\frac94}", Fraction(3, 2)),
        (r"\sqrt[3]{-8}", -2),
        ("4^{3/2}", 8),
        (r"|2-5|", 3),
        (r"||1-3|-5|", 3),
        (r"\lfloor-2.5\rfloor", -3),
        (r"\max(1,3,2)", 3),
        (r"\gcd(12,18)", 6),
        (r"\sum_{k=1}^{4}k^2", 30),
        (r"\prod_{i=1}^{4}i", 24),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", -2),
        ("50%", Fraction(1, 2)),
    ],
)
def test_rational_values_are_exact(text, value):
    assert worked_out(tree(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\sin 30^\circ", 0.5),
        (r"\log_2 8", 3),
        (r"\log 100", 2),
        (r"\ln e^2", 2),
        (r"\cos^{-1}0", 1.5707963267948966),
        (r"\sin^2 1+\cos^2 1", 1),
        (r"e^{i\pi}", -1),
        ("sqrt(2)", 1.4142135623730951),
        (r"\ln 2 \cdot 3", 2.0794415416798357),
    ],
)
def test_other_values_are_near(text, value):
    assert abs(worked_out(tree(text)) - value) < DOUBLE


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "2 3",
            "x2",
            "1_2",
            "19 if x",
            "2+",
            "(1",
            "1)",
            r"\foo{1}",
            "a=b",
            "1,2",
            r"\sqrt{}",
        ),
        *("(" * 200 + "1" + ")" * 200, "1/" * 100 + "1", "^2", r"\frac{1}", r"1\dots", "é", "x&z"),
    ],
)
def test_what_is_no_formula_is_not_read(text):
    assert tree(text) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mc^2", {"m", "c"}),
        ("x_1+x_{1}", {"x_{1}"}),
        ("y'", {"y'"}),
        (r"\vec{v}", {r"\vec v"}),
        (r"\overline{AB}", set()),
        ("2e^{i x}", {"x"}),
        (r"\sum_{i=1}^{n}i", {"n"}),
        (r"\int_0^1 x dx", set()),
        (r"\frac{d}{dx}x^2", {"x"}),
        ("f(x)", {"x"}),
        (r"\frac{dy}{dx}", {"dy/dx"}),
    ],
)
def test_names_are_whole(text, names):
    assert free_symbols(tree(text)) == names


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("(x+1)^2", "x^2+2x+1", True),
        (r"\frac{x^2-1}{x-1}", "x+1", True),
        (r"\frac{1}{x}+\frac{1}{y}", r"\frac{x+y}{xy}", True),
        ("x^2", "x^3", False),
        ("0.1x+0.2x", "0.3x", True),
        (r"\sin x", r"\cos x", False),
        (r"\sin x", r"\sin x", True),
        ("AB", "BA", False),
        ("AB", r"A\cdot B", True),
        ("abc", "cba", False),
        ("10^{300}+1", "10^{300}", False),
        (r"\sqrt{x^2}", "x", False),
        (r"2\sqrt3", r"\sqrt{12}", None),
    ],
)
def test_formulas_are_compared_here_as_far_as_possible(first, second, equal):
    assert same(tree(first), tree(second)) is equal


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (r"2\sqrt3", r"\sqrt{12}", True),
        (r"\sqrt{2}", r"\sqrt{2}+10^{-90}", False),
        ("3^{2019}-1", "3^{2019}", False),
        (r"\frac{\pi^2}{6}", r"\sum_{n=1}^{\infty}\frac{1}{n^2}", True),
        (r"e^{\pi\sqrt{163}}", "262537412640768744", False),
        (r"(\sqrt{2}+\sqrt{3})^{2}", r"5+2\sqrt{6}", True),
        (r"\sqrt{x^2}", "|x|", True),
        (r"\ln|x|", r"\ln x", False),
        (r"\int_0^1 e^{-x}dx", r"1-e^{-1}", True),
        (r"\frac{d}{dx}\sin x^2", r"2x\cos x^2", True),
    ],
)
def test_a_worker_confirms_with_more_digits(first, second, equal):
    assert equal_expressions([normalise(first), normalise(second)]) is equal


def test_proportional_formulas_are_zero_at_the_same_places():
    line = tree("2x-y+1")
    assert proportional(line, tree("-4x+2y-2"), ordered=False) is True
    assert proportional(line, tree("-4x+2y-2"), ordered=True) is False
    assert proportional(line, tree("2x-y+2"), ordered=False) is False
    assert proportional(tree("x^2+1"), tree("1"), ordered=False) is False


def test_what_has_no_value_has_none():
    assert [worked_out(tree(text)) for text in ("1/0", "0^0", r"\ln 0", "(-1)!")] == [None] * 4
    assert not equal_expressions([r"\frac{1}{0}"])
