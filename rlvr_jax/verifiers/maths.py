r"""Mathematical answers: does a response give the value that is wanted?

Four stages, none of which raises on text: cut behind </think>, extract what stands in \boxed{…}
(`extract.spellings`), normalise (`notation`), compare. Integers, fractions, decimals, percentages,
degrees, powers, multiples of π, option letters, and tuples, intervals, unions, sets, lists and
matrices of them are compared exactly in this process, in microseconds (`parsing`, `values`).
Entries that are other expressions go pair by pair to math-verify in a worker (`pool`, `algebra`),
gold first, below size limits, and what it calls equal is checked against the exact or the numerical
value.

Readings that differ elsewhere: a decimal answer equals only a decimal gold (1/3 is not 0.3333);
50 % is 0.5 and not 50, unless asked; (1, 4) is neither {1, 4} nor "1 and 4"; 5 is neither {5} nor
[5, 5] nor the list "5, 5"; only some equations give a value (`equations`); of several boxes each
has to be right; a gold that nobody can parse gives None, so that the prompt is dropped and the
policy not punished.

Known deviations from what one might want: a unit is accepted where the gold has none, is not
converted, and only those of a list are known (`units`); plain words are compared as text, so a
synonym is wrong; the gold list "1, 4" is unordered; (0, 1) as a point and as an open interval are
the same.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rlvr_jax.verifiers.extract import agreed, spellings
from rlvr_jax.verifiers.parsing import parse_answer
from rlvr_jax.verifiers.pool import WorkerPool
from rlvr_jax.verifiers.comparison import Rules, is_gradable
from rlvr_jax.verifiers.values import Ask

__all__ = ["MathVerifier", "Verdict", "verify_math"]

_MAX_WORKERS = 8  # by default; each holds sympy in memory


@dataclass(frozen=True)
class Verdict:
    """What became of one response.

    Fields:
      correct: None if nothing can be said: the gold cannot be graded, whatever the response, or
        the comparison was lost.
      timed_out: the comparison was stopped; correct is then False, or None if it is the gold that
        could not be read in time.
      extracted: the answer as written, None if the response gives none, or several.
      lost: a process was killed twice, or reading the gold failed there: nobody's fault, and
        another time may tell.
    """

    correct: bool | None
    timed_out: bool
    extracted: str | None
    lost: bool = False


class MathVerifier:
    """Grades batches of responses. Workers start when the first expression needs them.

    Args:
      workers: processes for what is not decided here; None is half of the machine's cores, at least
        1 and at most 8.
      wall_seconds: limit of one comparison.
      choice: golds are option letters; "the answer is (A)" counts without a box.
      percent_is_number: 50 % equals 50 as well.
      relative_tolerance: |answer - gold| / |gold| where the gold is written as a decimal; None is
        10^-6, but at most half of the last digit that the gold has.
      answer_line, last_number, require_think: see `extract.spellings`.
    Raises:
      ValueError: relative_tolerance is negative.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        wall_seconds: float = 2.0,
        choice: bool = False,
        percent_is_number: bool = False,
        relative_tolerance: float | None = None,
        answer_line: bool = False,
        last_number: bool = False,
        require_think: bool = False,
    ):
        if relative_tolerance is not None and not relative_tolerance >= 0:
            raise ValueError(
                f"MathVerifier: relative_tolerance must be at least 0, got {relative_tolerance}"
            )
        self._extract = functools.partial(
            spellings,
            choice=choice,
            answer_line=answer_line,
            last_number=last_number,
            require_think=require_think,
        )
        tolerance = None if relative_tolerance is None else Fraction(relative_tolerance)
        self._rules = Rules(choice, percent_is_number, tolerance)
        if workers is None:
            workers = max(1, min(_MAX_WORKERS, (os.cpu_count() or 1) // 2))
        self.pool = WorkerPool(
            "rlvr_jax.verifiers.algebra:equal_expressions",
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
        lost: set[tuple[str, ...]] = set()
        # What is open after the exact comparisons is asked at once, for all responses.
        while True:
            wanted: dict[tuple[str, ...], None] = {}
            verdicts = []
            for options, found in zip(choices, answers, strict=True):
                used: set[tuple[str, ...]] = set()
                ask = functools.partial(_look_up, known, wanted, used)
                correct = self._grade_one(options, found, ask)
                missed = not correct and bool(used & lost)
                verdicts.append(
                    Verdict(
                        correct=None if missed else correct,
                        timed_out=not correct and not missed and bool(used & late),
                        extracted=found[-1] if correct else agreed(found),
                        lost=missed,
                    )
                )
            if not wanted:
                return verdicts
            for key, result in zip(
                wanted, self.pool.map([list(key) for key in wanted]), strict=True
            ):
                known[key] = result.value is True
                if result.timed_out:
                    late.add(key)
                elif result.lost or (result.error is not None and len(key) == 1):
                    lost.add(key)  # an answer may break a worker; that of a gold tells nothing

    def close(self) -> None:
        """Ends the workers."""
        self.pool.close()

    def __enter__(self) -> MathVerifier:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _grade_one(self, golds: list[str], answers: list[str], ask: Ask) -> bool | None:
        """True, False, or None for a gold that cannot be graded."""
        # {3} is 3 or a set; whichever is meant, it is right if the gold is that.
        given = [
            {parse_answer(answer, self._rules.choice, grouped) for grouped in (True, False)}
            - {None}
            for answer in answers
        ]
        gradable = False
        for gold in golds:
            wanted = parse_answer(gold, self._rules.choice)
            if wanted is None or is_gradable(wanted, ask) is False:
                continue
            gradable = True
            equal = [any([self._rules.equal(wanted, v, ask) for v in each]) for each in given]
            if equal and all(equal):
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
