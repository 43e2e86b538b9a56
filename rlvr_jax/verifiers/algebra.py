"""What the workers of the mathematics verifier do: sympy and math-verify compare two TeX texts.

math-verify takes the last side of an equation for its value, the number in front of ≈, what stands
in a box, and drops letters at the end as units. Here a text is read as a whole or not at all, and a
relation is never equal to a value; what is left of an answer without its unit or its "x =" is
decided before (`parsing`).

Source: https://github.com/huggingface/Math-Verify.
"""

from __future__ import annotations

import re

__all__ = ["equal_expressions"]

_SAME = 50  # agreeing digits, of 60, that count as equal
_POINTS = ((17, 13), (29, 23), (43, 31), (5, 37))
_REWRITES = [
    (re.compile(r"(\d+(?:\.\d+)?)°"), r"(\1\\cdot\\frac{\\pi}{180})"),
    # math-verify takes all integers that touch for mixed numbers: of 2(3) it makes 5.
    (re.compile(r"(?<![\d.])(\d+)(\\frac\{\d+\}\{\d+\})"), r"(\1+\2)"),
    (re.compile(r"(?<=[\d)])(?=\()|(?<=\))(?=\d)"), r"\\cdot "),
]


def equal_expressions(job: list[str]) -> bool:
    """Compares [gold, answer]; of a single [gold] says whether it can be parsed."""
    try:
        values = [_algebraic(tex) for tex in job]
        return len(values) == 1 or _equal_algebraic(*values)
    except MemoryError:  # perhaps of an earlier job; the pool tries again in another worker
        raise
    except Exception:  # parser and algebra raise anything on what they cannot read or compare
        return False


def _algebraic(tex: str):
    """Parses TeX to a sympy object."""
    import sympy
    from latex2sympy2_extended import NormalizationConfig, latex2sympy
    from math_verify.grader import should_treat_as_complex

    for pattern, replacement in _REWRITES:
        tex = pattern.sub(replacement, tex)
    config = NormalizationConfig(units=False, malformed_operators=True, nits=True, boxed="none")
    is_real = not should_treat_as_complex(tex)
    found = latex2sympy(tex, is_real=is_real, normalization_config=config)
    if not isinstance(found, sympy.Basic | sympy.MatrixBase):
        raise ValueError(f"no mathematical object: {found!r}")
    return found


def _equal_algebraic(gold, answer) -> bool:
    import sympy

    pair = [gold, answer]
    if all(isinstance(value, sympy.Expr) for value in pair):
        letters = {"i": sympy.I, "e": sympy.E}  # in a number they are the constants
        symbols = gold.free_symbols | answer.free_symbols
        if all(symbol.name in letters for symbol in symbols):
            constants = {symbol: letters[symbol.name] for symbol in symbols}
            pair = [value.subs(constants).doit() for value in pair]
            return _equal_values(*pair, exact=not gold.has(sympy.Float))
        return _same(gold, answer) and _agree_at_points(gold, answer)
    # Of {5}, [5, 5], x = 5 and 5 = 5, math-verify would take the 5.
    values = [isinstance(value, sympy.Expr | sympy.MatrixBase) for value in pair]
    return values[0] == values[1] and _same(gold, answer)


def _same(gold, answer) -> bool:
    from math_verify import verify

    return bool(verify(gold, answer, timeout_seconds=None, raise_on_error=True))


def _equal_values(gold, answer, exact: bool = True) -> bool:
    if gold.is_Rational and answer.is_Rational:
        return gold == answer
    first, second = gold.evalf(60), answer.evalf(60)
    if not (first.is_number and second.is_number and first.is_finite and second.is_finite):
        return gold == answer
    digits = _SAME if exact else 6
    return bool(abs(first - second) * 10**digits <= max(abs(first), abs(second)))


def _agree_at_points(gold, answer) -> bool:
    """Refuses what is equal only after rounding: 0.333333 x is not x/3."""
    import sympy

    symbols = sorted(gold.free_symbols | answer.free_symbols, key=str)
    for shift in range(3):
        place = {
            symbol: sympy.Rational(*_POINTS[(index + shift) % 4]) + index
            for index, symbol in enumerate(symbols)
        }
        pair = [value.subs(place).doit() for value in (gold, answer)]
        if all(value.is_number for value in pair) and not _equal_values(
            *pair, exact=not gold.has(sympy.Float)
        ):
            return False
    return True
