r"""Combinatorial: longest increasing subsequences and activity schedules with one optimum each.

A response has the size as \answer{…} and the optimum as \ids{…}; both must be correct. `info` of a
grade has their rewards as `answer`, `exact` and `prefix`.
"""

import itertools
from random import Random
from typing import Annotated, Literal

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.puzzles.combinatorial import LEVELS, generate

_QUESTIONS = {
    "lis": (
        "Find the longest strictly increasing subsequence of these numbers, given with their"
        " positions: the numbers of it need not stand next to each other, but each must be larger"
        " than the one before."
    ),
    "schedule": (
        "Choose as many of these activities as possible, so that no two overlap; one may begin when"
        " another ends. They are given with their numbers, as [start, end)."
    ),
}
_FORMS = {
    "lis": r"\answer{its length} and \ids{the positions, in order, commas between}",
    "schedule": (
        r"\answer{how many} and \ids{their numbers, in the order of their ends, commas between}"
    ),
}


@generated()
def combinatorial(
    questions: Annotated[Literal["lis", "schedule", "both"], "half and half"] = "both",
) -> Generated:
    """`meta["level"]` is 1 to 3 for 5 to 8, 9 to 12 and 13 to 16 items."""
    kinds = tuple(_QUESTIONS) if questions == "both" else (questions,)
    levels = range(1, len(LEVELS) + 1)
    return Generated(
        _draw,
        list(itertools.product(levels, kinds)),
        verify=verifier(Check("rlvr_jax.verifiers.puzzles.combinatorial:check"), workers=0),
        rewards=("outcome", "answer", "exact", "prefix"),
        answers=True,
        derived=("meta",),
    )


def _draw(random: Random, chosen: tuple[int, str]) -> Prompt:
    level, kind = chosen
    items, ids = generate(random, level, kind)
    shown = [str(x) if kind == "lis" else f"[{x[0]}, {x[1]})" for x in items]
    listed = "\n".join(f"{number}: {text}" for number, text in enumerate(shown, 1))
    return Prompt(
        text=f"{_QUESTIONS[kind]}\n\n{listed}\n\nEnd with {_FORMS[kind]}.",
        answer=ids,
        kind=kind,
        gold=rf"\answer{{{len(ids)}}} \ids{{{', '.join(map(str, ids))}}}",
        meta={"level": level},
    )
