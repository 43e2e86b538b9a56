"""Enigmata: sixteen kinds of puzzles whose answer is a block, one kind or all mixed.

    load("enigmata:maze")
    load("enigmata")

The rules, the generators and the checks are in `rlvr_jax.verifiers.puzzles`, one file per puzzle.
Sudoku is a separate task. Left out: 19 of the 36 puzzles. Some are fixed sets without a generator;
the others have no rules here.

Source: https://github.com/BytedTsinghua-SIA/Enigmata; mixed evenly over puzzles and levels, which
is our choice.
"""

import itertools
from random import Random
from typing import Annotated

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.verifiers.puzzles.board import Puzzle
from rlvr_jax.verifiers.puzzles.enigmata import PUZZLES

MODULE = "rlvr_jax.verifiers.puzzles.enigmata"
NAMES = tuple(sorted(set(PUZZLES) - {"sudoku"}))
_LEVELS = (1, 2, 3)


@generated()
def enigmata(puzzle: Annotated[str, ("all", *NAMES)] = "all") -> Generated:
    """The kind of a prompt is its puzzle; `meta["level"]` is 1, 2 or 3, as many prompts of each."""
    names = NAMES if puzzle == "all" else (puzzle,)
    return Generated(
        _draw,
        list(itertools.product(_LEVELS, names)),
        name="enigmata" if puzzle == "all" else f"enigmata:{puzzle}",
        verify=verifier_of(MODULE, workers=0),
        answers=True,
        derived=("meta",),
    )


def puzzle_prompt(puzzle: Puzzle, kind: str, level: int) -> Prompt:
    """The prompt of a puzzle; its gold response is the solution in a block."""
    return Prompt(
        text=puzzle.question,
        answer=puzzle.instance,
        kind=kind,
        gold=f"```\n{puzzle.solution}\n```",
        meta={"level": level} | ({"wrong": f"```\n{puzzle.wrong}\n```"} if puzzle.wrong else {}),
    )


def _draw(random: Random, chosen: tuple[int, str]) -> Prompt:
    level, name = chosen
    return puzzle_prompt(PUZZLES[name].generate(random, level), name, level)
