r"""Mathematical answers: whether the answer of a response equals a gold.

There are four stages, none of which raises on text: skip to </think>, extract the content of
\boxed{…} (`extract.spellings`), normalise (`notation`), compare. Most comparisons are exact and
take microseconds in this process: numbers of any spelling, option letters, words, rational
formulas, sets of real numbers, and containers of them (`parsing`, `comparison`, `formulas`). Other
formulas are refuted here, and confirmed to 50 digits or more in a worker (`algebra`).

The rules:

- Case counts in every symbol. Words are compared without case and in the singular. Two lower-case
  letters next to each other commute. Primes, stars and accents are part of a name.
- A decimal answer equals only a decimal gold (1/3 is not 0.3333). The tolerance is 10^-6, and at
  most half of the gold's last digit. 50 % is 0.5, and 50 only with `percent_is_number`.
- Every side of a chain "2 + 3 = 5 = 5.0" must be correct. ≈ may occur once and must be true. If the
  gold is a value or a range of one variable, "x + 3 = 5" is not solved; otherwise equations are
  equal up to a factor. Statements about numbers ("2 + 2 = 4") are compared side by side.
- Formulas are equal on the domain of the gold: y is (√y)². One side may lack "for all real x",
  "n ≥ 1" and "k ∈ ℤ". k (`qualifiers`) and arbitrary constants (`constants`) may have other names.
- (1, 4) is neither {1, 4} nor "1 and 4". 5 is neither {5} nor [5, 5] nor the list "5, 5". The list
  "1, 4" is unordered. (0, 1) as a point equals the open interval. x = 2, y = 3 equals (2, 3) in the
  order of the names, but there (0, 1) is an interval.
- One side may lack units and words for counted things, but they must not differ. Only SI prefixes,
  time and cents are converted (`units`, `words`). A gold in another base requires that base.
- 12:30 is a time of day, compared as text; any other colon makes a ratio.
- Words are compared as text, so a synonym is incorrect.
- Each of several boxes must be correct, unless `boxes` differs. A gold that cannot be parsed is
  ungraded, so that the prompt is dropped and the policy is not punished.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from fractions import Fraction

from rlvr_jax.verifiers.grade import LOST, TIMED_OUT, Grade
from rlvr_jax.verifiers.maths.algebra import equal_expressions
from rlvr_jax.verifiers.maths.comparison import Rules
from rlvr_jax.verifiers.maths.extract import BOXES, Boxes, agreed, spellings
from rlvr_jax.verifiers.maths.gradable import is_gradable
from rlvr_jax.verifiers.maths.parsing import parse_answer
from rlvr_jax.verifiers.maths.values import Query
from rlvr_jax.verifiers.pool import WorkerPool

_MAX_WORKERS = 8  # default


class MathVerifier:
    """Grades batches of responses. Workers start when the first expression needs them.

    Args:
      workers: processes for comparisons that are not decided here. None: half of the machine's
        cores, at least 1 and at most 8.
      wall_seconds: time limit of one comparison.
      boxes: how several boxes are read, see `extract.spellings`.
      choice: golds are option letters, in any order; "the answer is (A)" counts without a box.
      percent_is_number: 50 % also equals 50.
      relative_tolerance: bound of |answer - gold| / |gold| for a gold that is written as a decimal.
        None: 10^-6, and at most half of the gold's last digit.
      answer_line, last_number, require_think: see `extract.spellings`.
    Raises:
      ValueError: relative_tolerance is negative; boxes is unknown.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        wall_seconds: float = 2.0,
        boxes: Boxes = "each",
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
        if boxes not in BOXES:
            raise ValueError(
                f"MathVerifier: boxes must be one of {', '.join(BOXES)}, got {boxes!r}"
            )
        self._joined = boxes == "joined"
        self._extract = functools.partial(
            spellings,
            boxes=boxes,
            choice=choice,
            answer_line=answer_line,
            last_number=last_number,
            require_think=require_think,
        )
        tolerance = None if relative_tolerance is None else Fraction(relative_tolerance)
        self._rules = Rules(choice=choice, percent_is_number=percent_is_number, tolerance=tolerance)
        if workers is None:
            workers = max(1, min(_MAX_WORKERS, (os.cpu_count() or 1) // 2))
        self.pool: WorkerPool = WorkerPool(
            "rlvr_jax.verifiers.maths.algebra:equal_expressions",
            workers=workers,
            wall_seconds=wall_seconds,
            warm_up=["\\frac{d}{dx}x^2", "2x"],
        )

    def grade(self, golds: Sequence[str | Sequence[str]], responses: Sequence[str]) -> list[Grade]:
        """Grades responses[i] against golds[i]; a list of golds means alternatives.

        `answer` is the answer as written, or None for several. `stage` is one of: "gold" (it cannot
        be graded), "no answer", "exact" (decided in this process), "digits" (in a worker), "timed
        out", "lost" (another attempt may succeed). If the gold is not read in time, the response is
        ungraded.

        Raises:
          ValueError: the numbers of golds and responses differ.
        """
        if len(golds) != len(responses):
            raise ValueError(
                "MathVerifier.grade: golds and responses must have equal lengths, got"
                f" {len(golds)} and {len(responses)}"
            )
        choices = [[gold] if isinstance(gold, str) else list(gold) for gold in golds]
        answers = [self._extract(response) for response in responses]
        known: dict[tuple[str, ...], bool] = {}
        late: set[tuple[str, ...]] = set()
        lost: set[tuple[str, ...]] = set()
        # Comparisons that the exact stage leaves open go to the workers, for all responses at once.
        while True:
            wanted: dict[tuple[str, ...], None] = {}
            grades = []
            for options, found in zip(choices, answers, strict=True):
                used: set[tuple[str, ...]] = set()
                query = functools.partial(_look_up, known, wanted, used)
                correct = _right(options, found, self._rules, query)
                if correct is False and self._joined and len(found) > 1:
                    correct = _right(options, [", ".join(found)], self._rules, query)
                missed = not correct and bool(used & lost)
                stopped = not correct and not missed and bool(used & late)
                decided = "digits" if used else "exact"
                if correct is None:
                    decided = "gold"
                elif not found:
                    decided = "no answer"
                grades.append(
                    Grade(
                        None if missed or correct is None else float(correct),
                        timed_out=stopped and correct is not None,
                        answer=found[-1] if correct else agreed(found),
                        stage=LOST if missed else TIMED_OUT if stopped else decided,
                    )
                )
            if not wanted:
                return grades
            for key, result in zip(
                wanted, self.pool.map([list(key) for key in wanted]), strict=True
            ):
                known[key] = result.value is True
                if result.timed_out:
                    late.add(key)
                elif result.lost or (result.error is not None and len(key) == 1):
                    lost.add(key)  # an answer may break a worker; for a gold it proves nothing

    def close(self) -> None:
        """Ends the workers."""
        self.pool.close()

    def __enter__(self) -> MathVerifier:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _right(golds: list[str], answers: list[str], rules: Rules, query: Query) -> bool | None:
    """Whether all answers equal one of the golds; None if none of these can be graded."""
    # {3} is 3 or a set; it is correct if the gold is either.
    given = [
        {parse_answer(answer, rules.choice, grouped) for grouped in (True, False)} - {None}
        for answer in answers
    ]
    gradable = False
    for gold in golds:
        wanted = parse_answer(gold, rules.choice)
        if wanted is None or is_gradable(wanted, query) is False:
            continue
        gradable = True
        equal = [any([rules.equal(wanted, value, query) for value in each]) for each in given]
        if equal and all(equal):
            return True
    return False if gradable else None


def check(
    answer: str,
    gold: str | Sequence[str],
    choice: bool = False,
    percent_is_number: bool = False,
    relative_tolerance: float | None = None,
) -> Grade:
    """Compares an answer (`extract.final_answer`) in this process, for a `Check` in a pool.

    Args:
      answer: extracted answer of a response.
      gold: one gold, or alternatives.
      choice, percent_is_number, relative_tolerance: as in `MathVerifier`.
    """
    asked = []

    def query(key: tuple[str, ...]) -> bool:
        asked.append(key)
        return equal_expressions(list(key))

    tolerance = None if relative_tolerance is None else Fraction(relative_tolerance)
    rules = Rules(choice=choice, percent_is_number=percent_is_number, tolerance=tolerance)
    right = _right([gold] if isinstance(gold, str) else list(gold), [answer], rules, query)
    stage = "gold" if right is None else "digits" if asked else "exact"
    return Grade(None if right is None else float(right), answer=answer, stage=stage)


def verify_math(gold: str | list[str], response: str) -> Grade:
    r"""Grades one response with the default rules; for batches and options see `MathVerifier`.

    Examples:
      >>> from rlvr_jax.verifiers import verify_math
      >>> verify_math("0.5", r"So x = \boxed{1/2}.").outcome
      1.0
    """
    return _shared_verifier().grade([gold], [response])[0]


@functools.cache
def _shared_verifier() -> MathVerifier:
    return MathVerifier()


def _look_up(known, wanted, used, key: tuple[str, ...]) -> bool | None:
    used.add(key)
    if key not in known:
        wanted[key] = None
    return known.get(key)
