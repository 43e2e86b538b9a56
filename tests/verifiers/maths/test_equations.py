"""Which equations give a value, and that no condition or second statement is dropped."""

import pytest

RIGHT = [
    ("5", "x=5"),
    ("5", "x_1 = 5"),
    ("5", "5 = x"),
    ("5", r"\theta = 5"),
    ("5", "AB=5"),
    ("5", r"\angle ABC = 5"),
    ("5", r"\text{Area of } ABC = 5"),
    ("5", "f(3)=5"),
    ("5", "f^{-1}(x)=5"),
    ("5", "P(X = 1) = 5"),
    ("5", r"\det(A) = 5"),
    ("5", "a+b=5"),
    ("5", "a_1+a_2=5"),
    ("5", "|AB|=5"),
    ("5", r"\frac{AB}{CD}=5"),
    ("5", r"\lim_{x \to 0} f(x) = 5"),
    ("5", "x=2+3=5"),
    ("5", r"x \approx 5"),
    (r"\sqrt8", r"x=\sqrt8=2\sqrt2"),
    ("x^2+1", "f(x)=x^2+1"),
    ("(1,2)", "(x,y)=(1,2)"),
    ("x=5", "5"),
    ("x=5", "x=2+3=5"),
    (r"\frac{NO}{BO}=\frac{1}{2}", "1/2"),
    ("y=2x+1", "2x-y+1=0"),
    ("x^2+y^2=4", "y^2+x^2=4"),
    (r"x \ne 2", "x != 2"),
    ("1, 2", "x=1, x=2"),
    ("342", r"19 \boxed{18}"),
    (r"6\sqrt2", r"2(3)\sqrt{2}"),
    (r"\frac52 \pi", r"2\frac12 \pi"),
]
WRONG = [
    # the value has still to be worked out
    ("18", "2x=18"),
    ("18", "3x=18"),
    ("18", "x-1=18"),
    ("18", "19+x=18"),
    ("18", r"\frac{x}{2}=18"),
    ("18", r"\sin(x)=18"),
    ("18", "log(x)=18"),
    ("4", "x^2=4"),
    (r"\sqrt2", r"2x=\sqrt2"),
    ("x^2+1", "2y=x^2+1"),
    # two values
    ("18", "x=19=18"),
    ("18", "19=x=18"),
    ("18", r"x=19 \quad y=18"),
    ("18", r"x=19 \text{ so } y=18"),
    ("18", r"x=19 \implies y=18"),
    # a condition, or another relation
    ("x+AB<7", "x<3"),
    ("18", r"19\text{ if } x=18"),
    ("18", r"19 \text{ when } n=18"),
    ("18", r"5 \text{ where } y=18"),
    (r"2\sqrt3", r"5\text{ if } x=2\sqrt{3}"),
    ("18", r"18\approx 19"),
    (r"2\sqrt3", r"2\sqrt{3}\approx 5"),
    ("x^2+1", r"x^3\in x^2+1"),
    ("x^2+1", r"x^3\equiv x^2+1"),
    ("18", r"x \ne 18"),
    ("18", r"a+b \not= 18"),
    ("18", r"18 \text{ hours} = 1080 \text{ minutes}"),
    ("1080", r"18 \text{ hours} = 1080 \text{ minutes}"),
    # a number in front or behind, which is not all
    ("18", "18_19"),
    ("18", r"19 \boxed{18}"),
    ("37", r"19 \boxed{18}"),
    ("5", "(2)(3)"),
    ("5x", "2(3)x"),
    (r"\pi", r"2\frac12 \pi"),
    ("37", r"18 \ldots 19"),
    ("18", "18 < 19"),
    # what the gold says besides
    ("2x-y+1=0", "0"),
    ("x^2+y^2=4", "4"),
    ("x=5", "y=5"),
]


@pytest.mark.parametrize(("gold", "answer"), RIGHT)
def test_what_names_a_value_gives_it(judge, gold, answer):
    assert judge(gold, answer) == 1


@pytest.mark.parametrize(("gold", "answer"), WRONG)
def test_what_says_something_else_is_wrong(judge, gold, answer):
    assert judge(gold, answer) == 0
