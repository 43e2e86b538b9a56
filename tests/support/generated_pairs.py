"""Pairs of a gold and an answer of thirteen types, and whether they are equal by exact arithmetic.

Every maker draws from a `random.Random` and gives (gold, answer, equal): half of the pairs are near
misses, whose value differs in one digit, sign, order, end or unit. Equality is known before
anything is written down: `Fraction` and integers for numbers, sympy for radicals and polynomials.
"""

import random
from fractions import Fraction

import sympy


def integers(draw: random.Random):
    value = draw.randint(-(10**6), 10**6)
    other = near(draw, value, 1)
    return spell_integer(draw, value), spell_integer(draw, other), value == other


def decimals(draw):
    digits = draw.randint(1, 6)
    value = Fraction(draw.randint(-(10**7), 10**7), 10**digits)
    other = near(draw, value, Fraction(1, 10**digits))
    return (
        decimal(value, digits),
        draw.choice([decimal(other, digits + 2), fraction(other)]),
        (value == other),
    )


def fractions(draw):
    value = Fraction(draw.randint(-60, 60) or 1, draw.randint(2, 40))
    other = near(draw, value, Fraction(1, value.denominator))
    scale = draw.randint(1, 9)
    top, bottom = other.numerator * scale, other.denominator * scale
    answer = draw.choice(
        [f"{top}/{bottom}", rf"\frac{{{top}}}{{{bottom}}}", rf"-\dfrac{{{-top}}}{{{bottom}}}"]
    )
    return fraction(value), answer, value == other


def percents(draw):
    value = Fraction(draw.randint(1, 4000), 10)
    other = near(draw, value, Fraction(1, 10))
    answer = draw.choice(
        [decimal(other / 100, 3), fraction(other / 100), rf"{decimal(other, 1)}\%"]
    )
    return rf"{decimal(value, 1)}\%", answer, value == other


def mixed_numbers(draw):
    bottom = draw.randint(2, 16)
    whole, top = draw.randint(1, 30), draw.randint(1, bottom - 1)
    value = whole + Fraction(top, bottom)
    other = near(draw, value, Fraction(1, bottom))
    gold = draw.choice([rf"{whole}\frac{{{top}}}{{{bottom}}}", f"{whole} {top}/{bottom}"])
    return gold, fraction(other), value == other


def scientific(draw):
    digits, power = draw.randint(100, 999), draw.randint(-12, 20)
    value = Fraction(digits, 100) * Fraction(10) ** power
    # The last digit, or a power of ten.
    other = (
        value
        if draw.random() < 0.5
        else draw.choice([value * 10, value + Fraction(10) ** (power - 2)])
    )
    shown = other / Fraction(10) ** power
    answer = draw.choice(
        [
            rf"{decimal(shown, 2)} \cdot 10^{{{power}}}",
            f"{decimal(shown, 2)}e{power}",
            fraction(other),
        ]
    )
    return rf"{digits // 100}.{digits % 100:02} \times 10^{{{power}}}", answer, value == other


def radicals(draw):
    a, b = draw.randint(1, 9), draw.choice([2, 3, 5, 6, 7, 10])
    c = draw.randint(-9, 9)
    value = sympy.Integer(c) + a * sympy.sqrt(b)
    wrong = draw.choice(
        [c - a * sympy.sqrt(b), c + (a + 1) * sympy.sqrt(b), c + a * sympy.sqrt(b + 1)]
    )
    other = value if draw.random() < 0.5 else wrong
    square = sympy.expand((other - c) ** 2)
    sign = "-" if (other - c).is_negative else "+"
    answer = draw.choice(
        [rf"{c}{sign}\sqrt{{{square}}}", sympy.latex(other), f"{c}{sign}({square})^{{1/2}}"]
    )
    return rf"{a}\sqrt{{{b}}}{c:+}", answer, sympy.simplify(value - other) == 0


def polynomials(draw):
    x, y = sympy.symbols("x y")
    first = sum(draw.randint(-4, 4) * m for m in (x, y, x * y, sympy.Integer(1))) + x
    second = draw.randint(1, 5) * x + draw.randint(-5, 5) * y + draw.randint(-3, 3)
    value = sympy.expand(first * second)
    wrong = draw.choice([first * second + x, first * second - 1, (first + 1) * second])
    other = first * second if draw.random() < 0.5 else wrong
    answer = draw.choice([sympy.latex(sympy.expand(other)), sympy.latex(other), str(other)])
    return sympy.latex(value), answer, sympy.expand(value - other) == 0


def tuples(draw):
    values = [
        Fraction(draw.randint(-20, 20), draw.randint(1, 6)) for _ in range(draw.randint(2, 4))
    ]
    other = list(values)
    if draw.random() < 0.5:
        place = draw.randrange(len(values))
        other = draw.choice(
            [values[::-1], [*values[:place], values[place] + 1, *values[place + 1 :]]]
        )
    brackets = draw.choice([("(", ")"), (r"\left(", r"\right)"), (r"\langle ", r"\rangle")])
    answer = brackets[0] + ", ".join(map(fraction, other)) + brackets[1]
    return f"({','.join(map(fraction, values))})", answer, values == other


def intervals(draw):
    low, high = sorted(draw.sample(range(-30, 30), 2))
    closed = draw.random() < 0.5, draw.random() < 0.5
    ends = (Fraction(low, 2), Fraction(high, 2), *closed)
    other = ends
    if draw.random() < 0.5:
        other = draw.choice(
            [
                (ends[0] - 1, *ends[1:]),
                (ends[0], ends[1] + 1, *closed),
                (*ends[:2], not closed[0], closed[1]),
                (*ends[:2], closed[0], not closed[1]),
            ]
        )
    low_end, high_end = fraction(other[0]), fraction(other[1])
    left, right = (("<", r"\le ")[closed] for closed in other[2:])
    answer = draw.choice(
        [
            f"{'(['[other[2]]}{low_end}, {high_end}{')]'[other[3]]}",
            f"{low_end} {left} x {right} {high_end}",
            rf"\{{x \mid {low_end}{left}x{right}{high_end}\}}",
            f"{']['[other[2]]}{low_end};{high_end}{'[]'[other[3]]}",
        ]
    )
    gold = f"{'(['[closed[0]]}{fraction(ends[0])},{fraction(ends[1])}{')]'[closed[1]]}"
    return gold, answer, ends == other


def sets(draw):
    values = draw.sample(range(-9, 30), draw.randint(2, 5))
    other = draw.sample(values, len(values))
    if draw.random() < 0.5:
        other = draw.choice([other[1:], [*other, 31], [other[0] + 50, *other[1:]]])
    answer = rf"\{{{', '.join(map(str, other))}\}}"
    return rf"\{{{','.join(map(str, values))}\}}", answer, set(values) == set(other)


def equations(draw):
    a, b, c = draw.randint(1, 9), draw.choice([-5, -3, -2, 2, 3, 4, 7]), draw.randint(-9, 9)
    k = draw.choice([-3, -1, 2, 5])
    line = (a * k, b * k, c * k)
    if draw.random() < 0.5:
        place = draw.randrange(3)
        line = tuple(value + (index == place) * k for index, value in enumerate(line))
    equal = all(
        line[i] * (a, b, c)[j] == line[j] * (a, b, c)[i] for i in range(3) for j in range(3)
    )
    p, q, r = line
    answer = draw.choice(
        [f"{p}x{q:+}y={r}", f"{p}x{q:+}y{-r:+}=0", rf"y=\frac{{{r}}}{{{q}}}-\frac{{{p}}}{{{q}}}x"]
    )
    return f"{a}x{b:+}y={c}", answer, equal if q else False


def units(draw):
    value = Fraction(draw.randint(1, 9000), 10)
    prefixes = {"km": 3, "m": 0, "cm": -2, "mm": -3}
    shown, answered = draw.choice(list(prefixes)), draw.choice(list(prefixes))
    other = near(draw, value, Fraction(1, 10))
    if draw.random() < 0.3:  # the same number in another unit
        written, equal = value, shown == answered
    else:
        written = other * Fraction(10) ** (prefixes[shown] - prefixes[answered])
        equal = value == other
    return f"{decimal(value, 1)} {shown}", rf"{decimal(written, 8)} \text{{ {answered}}}", equal


TYPES = [
    integers,
    decimals,
    fractions,
    percents,
    mixed_numbers,
    scientific,
    radicals,
    polynomials,
    tuples,
    intervals,
    sets,
    equations,
    units,
]


def pairs(make, count: int):
    """This many pairs of one type, half of which are equal."""
    draw = random.Random(make.__name__)
    found = {True: [], False: []}
    while min(map(len, found.values())) < count // 2:
        gold, answer, equal = make(draw)
        if len(found[bool(equal)]) < count // 2:
            found[bool(equal)].append((gold, answer, bool(equal)))
    return found[True] + found[False]


def near(draw, value, step):
    return value if draw.random() < 0.5 else value + draw.choice([-step, step])


def spell_integer(draw, value):
    return draw.choice([f"{value}", f"{value:,}", f"{value:,}".replace(",", "{,}"), f"{value}.0"])


def decimal(value: Fraction, digits: int) -> str:
    """Exactly, with so many digits behind the point."""
    scaled = value * 10**digits
    assert scaled.denominator == 1
    text = f"{abs(int(scaled)):0{digits + 1}}"
    return ("-" if value < 0 else "") + f"{text[:-digits]}.{text[-digits:]}"


def fraction(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return rf"{'-' * (value < 0)}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
