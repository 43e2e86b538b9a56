r"""Mathematical answers: does a response give the value that is wanted?

Four stages, none of which raises on text: cut behind </think>, extract the one \boxed{…}
(`extract.final_answer`), normalise, compare. Integers, fractions, decimals, percentages, degrees,
powers, multiples of π, option letters, and tuples, intervals, unions, sets, lists and matrices of
them are compared exactly in this process, in microseconds (`parsing`, `values`). Entries that are
other expressions go pair by pair to math-verify in a worker (`pool`), gold first, below size
limits, and what it calls equal is checked against the exact or the numerical value.

Readings that differ elsewhere: a decimal answer equals only a decimal gold (1/3 is not 0.3333);
50 % is 0.5 and not 50, unless asked; (1, 4) is neither {1, 4} nor "1 and 4"; 5 is neither {5} nor
[5, 5] nor the list "5, 5"; an equation between two numbers ("10/2 = 5") is a statement and gives no
value; boxes that differ are no answer; a gold that nobody can parse gives None, so that the prompt
is dropped and the policy not punished.

Known deviations from what one might want: a unit is accepted where the gold has none, and only
units of a list are known ("3 apples" is left to math-verify); plain words are compared as text, so
a synonym is wrong; the gold list "1, 4" is unordered; (0, 1) as a point and as an open interval are
the same.

Source: https://github.com/huggingface/Math-Verify.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rlvr_jax.verifiers.extract import final_answer
from rlvr_jax.verifiers.parsing import parse_answer
from rlvr_jax.verifiers.pool import WorkerPool
from rlvr_jax.verifiers.values import Ask, Rules, is_gradable

__all__ = ["MathVerifier", "Verdict", "equal_expressions", "verify_math"]


@dataclass(frozen=True)
class Verdict:
    """What became of one response.

    Fields:
      correct: None if the gold cannot be graded at all, whatever the response.
      timed_out: the comparison was stopped; correct is then False.
      extracted: the answer as written, None if the response gives none.
    """

    correct: bool | None
    timed_out: bool
    extracted: str | None


class MathVerifier:
    """Grades batches of responses. Workers start when the first expression needs them.

    Args:
      workers: processes for what is not decided here.
      wall_seconds: limit of one comparison.
      choice: golds are option letters; "the answer is (A)" counts without a box.
      percent_is_number: 50 % equals 50 as well.
      relative_tolerance: |answer - gold| / |gold| where the gold is written as a decimal.
      answer_line, last_number, require_think: see `extract.final_answer`.
    Raises:
      ValueError: relative_tolerance is negative.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        wall_seconds: float = 2.0,
        choice: bool = False,
        percent_is_number: bool = False,
        relative_tolerance: float = 1e-6,
        answer_line: bool = False,
        last_number: bool = False,
        require_think: bool = False,
    ):
        if not relative_tolerance >= 0:
            raise ValueError(
                f"MathVerifier: relative_tolerance must be at least 0, got {relative_tolerance}"
            )
        self._extract = functools.partial(
            final_answer,
            choice=choice,
            answer_line=answer_line,
            last_number=last_number,
            require_think=require_think,
        )
        self._rules = Rules(choice, percent_is_number, Fraction(relative_tolerance))
        self.pool = WorkerPool(
            "rlvr_jax.verifiers.maths:equal_expressions",
            workers=workers,
            wall_seconds=wall_seconds,
            warm_up=["x^2+2x+\\sqrt{1}", "(x+1)^2"],
        )

    def grade(
        self, golds: Sequence[str | Sequence[str]], responses: Sequence[str]
    ) -> list[Verdict]:
        """Grades responses[i] against golds[i]; a list of golds names alternatives.

        Raises:
          ValueError: the numbers of golds and responses differ.
        """
        if len(golds) != len(responses):
            raise ValueError(
                f"MathVerifier.grade: golds and responses must be of one length, got {len(golds)}"
                f" and {len(responses)}"
            )
        choices = [[gold] if isinstance(gold, str) else list(gold) for gold in golds]
        answers = [self._extract(response) for response in responses]
        known: dict[tuple[str, ...], bool] = {}
        late: set[tuple[str, ...]] = set()
        # What is open after the exact comparisons is asked at once, for all responses.
        while True:
            wanted: dict[tuple[str, ...], None] = {}
            rows = []
            for options, answer in zip(choices, answers, strict=True):
                used: set[tuple[str, ...]] = set()
                ask = functools.partial(_look_up, known, wanted, used)
                rows.append((self._grade_one(options, answer, ask), bool(used & late)))
            if not wanted:
                break
            for key, result in zip(
                wanted, self.pool.map([list(key) for key in wanted]), strict=True
            ):
                known[key] = result.value is True
                if result.timed_out:
                    late.add(key)
        return [
            Verdict(correct, timed_out and not correct, answer)
            for (correct, timed_out), answer in zip(rows, answers, strict=True)
        ]

    def close(self) -> None:
        """Ends the workers."""
        self.pool.close()

    def __enter__(self) -> MathVerifier:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _grade_one(self, golds: list[str], answer: str | None, ask: Ask) -> bool | None:
        """True, False, or None for a gold that cannot be graded."""
        gradable = False
        for gold in golds:
            wanted = parse_answer(gold, self._rules.choice)
            if wanted is None or is_gradable(wanted, ask) is False:
                continue
            gradable = True
            given = None if answer is None else parse_answer(answer, self._rules.choice)
            if given is not None and self._rules.equal(wanted, given, ask):
                return True
        return False if gradable else None


def verify_math(gold: str | list[str], response: str) -> Verdict:
    """Grades one response with the default rules; for batches and options see `MathVerifier`."""
    return _shared_verifier().grade([gold], [response])[0]


@functools.cache
def _shared_verifier() -> MathVerifier:
    return MathVerifier()


def _look_up(known, wanted, used, key: tuple[str, ...]) -> bool | None:
    used.add(key)
    if key not in known:
        wanted[key] = None
    return known.get(key)


# What follows runs in a worker.

_SAME = 50  # agreeing digits, of 60, that count as equal
_POINTS = ((17, 13), (29, 23), (43, 31), (5, 37))


def equal_expressions(job: list[str]) -> bool:
    """Compares [gold, answer]; of a single [gold] says whether it can be parsed."""
    values = [_algebraic(tex) for tex in job]
    if any(value is None for value in values):
        return False
    return len(values) == 1 or _equal_algebraic(*values)


def _algebraic(tex: str):
    """Parses TeX to a sympy object; None if that fails."""
    from math_verify import LatexExtractionConfig, parse

    tex = re.sub(r"(\d+(?:\.\d+)?)°", r"(\1\\cdot\\frac{\\pi}{180})", tex)
    found = parse(f"${tex}$", [LatexExtractionConfig()], parsing_timeout=None)
    return found[0] if found and not isinstance(found[0], str) else None


def _equal_algebraic(gold, answer) -> bool:
    import sympy
    from math_verify import verify

    pair = [gold, answer]
    if all(isinstance(value, sympy.Expr) for value in pair):
        letters = {"i": sympy.I, "e": sympy.E}  # in a number they are the constants
        symbols = gold.free_symbols | answer.free_symbols
        if all(symbol.name in letters for symbol in symbols):
            constants = {symbol: letters[symbol.name] for symbol in symbols}
            pair = [value.subs(constants).doit() for value in pair]
            return _equal_values(*pair, exact=not gold.has(sympy.Float))
        same = verify(gold, answer, timeout_seconds=None)
        return bool(same) and _agree_at_points(gold, answer)
    if any(isinstance(value, sympy.Expr) for value in pair) and any(map(_is_no_value, pair)):
        return False
    return bool(verify(gold, answer, timeout_seconds=None))


def _is_no_value(found) -> bool:
    """True for {5}, [5, 5] and 5 = 5, of which math-verify takes the 5; a + b = 5 does name it."""
    import sympy

    if isinstance(found, sympy.And):  # a = b = c
        return all(map(_is_no_value, found.args))
    if isinstance(found, sympy.Rel):
        return found.lhs.is_number and found.rhs.is_number
    return isinstance(found, sympy.Set | sympy.Tuple)


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
