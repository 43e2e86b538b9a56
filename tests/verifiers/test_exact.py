"""Exact arithmetic, against Python's own on random expressions."""

import random
from fractions import Fraction

import pytest

from rlvr_jax.verifiers.exact import DECIMALS, INTEGERS, evaluate, plain_signs, tokens

NUM_EXPRESSIONS = 300


def value(text, **options):
    words = tokens(plain_signs(text), DECIMALS)
    return None if words is None else evaluate(words, signs=True, **options)


def expression(rng, depth):
    """A text, and the same in Python with fractions for numbers."""
    if depth == 0:
        number = rng.randint(0, 9)
        return str(number), f"Fraction({number})"
    if rng.random() < 0.2:
        inner, python = expression(rng, depth - 1)
        sign = rng.choice("+-")
        return f"({sign}{inner})", f"({sign}{python})"
    if rng.random() < 0.1:
        inner, python = expression(rng, depth - 1)
        power = rng.randint(0, 3)
        return f"({inner})^{power}", f"({python})**{power}"
    left, right = expression(rng, depth - 1), expression(rng, depth - 1)
    sign = rng.choice("+-*/")
    form = rng.choice(["{} {} {}", "({} {} {})"])
    return tuple(form.format(a, sign, b) for a, b in zip(left, right, strict=True))


def test_random_expressions_have_the_value_that_python_gives_them():
    rng = random.Random(0)
    for _ in range(NUM_EXPRESSIONS):
        text, python = expression(rng, rng.randint(1, 4))
        try:
            wanted = eval(python, {"Fraction": Fraction})  # made here, of no model's text
        except ZeroDivisionError:
            wanted = None
        assert value(text) == wanted, text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("-2^2", -4),
        ("2^-1", Fraction(1, 2)),
        ("2^3^2", 512),
        ("2^-1^2", Fraction(1, 2)),
        ("2*-3*4", -24),
        ("8-3-2", 3),
        ("8/4/2", 1),
        ("2 - -3", 5),
        ("2^100", 2**100),
        ("0^0", 1),
        (".5 + 0.25", Fraction(3, 4)),
        ("7 × 8 − 6 ÷ 2", 53),
    ],
)
def test_operators_bind_as_in_mathematics(text, wanted):
    assert value(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        *("", "()", "2+", "*2", "2 3", "2(3)", "(2)(3)", "(2", "2)", ")(", "--2", "1/0", "0^-1"),
        *("2^101", "2^0.5", "1.", "1..2", "1e3", "x", "2**3", "2//3", "٤", "2,3", "1_000"),
    ],
)
def test_what_is_no_expression_has_no_value(text):
    assert value(text) is None


def test_powers_of_powers_are_never_made():
    assert value("9^9^9^9") is None
    assert value("(((9^100)^100)^100)^100") is None
    assert value("*".join(["9^100"] * 1000)) is None


def test_deep_nesting_costs_no_recursion():
    assert value("(" * 10**5 + "1" + ")" * 10**5) == 1
    assert value("(" * 21 + "1" + ")" * 21, depth=20) is None
    assert value("(" * 20 + "1" + ")" * 20, depth=20) == 1


def test_a_leading_zero_is_a_number_of_its_own():
    assert tokens("04", INTEGERS) == ["0", "4"]
    assert evaluate(tokens("04", INTEGERS)) is None
    assert evaluate(tokens("1-2", INTEGERS)) == -1
    assert evaluate(tokens("-1+2", INTEGERS)) is None
