"""Enigmata: sixteen kinds of puzzles whose answer is a block, one kind or all mixed.

    load("enigmata:maze")
    load("enigmata")

The rules, the generators and the checks are in `rlvr_jax.verifiers.puzzles`, a file per puzzle.
Sudoku is a task of its own.

Source: https://github.com/BytedTsinghua-SIA/Enigmata; mixed evenly over puzzles and levels, which
is our choice.
"""

import difflib
import functools
import itertools
from random import Random

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE, splits
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.puzzles.board import Puzzle
from rlvr_jax.verifiers.puzzles.enigmata import PUZZLES

CHECK = Check(
    "rlvr_jax.verifiers.puzzles.enigmata:check", "rlvr_jax.verifiers.puzzles.enigmata:extract"
)
NAMES = tuple(sorted(set(PUZZLES) - {"sudoku"}))
_LEVELS = (1, 2, 3)


@functools.cache
def enigmata(
    puzzle: str = "all",
    size: int = SIZE,
    test_size: int = TEST_SIZE,
    seed: int = 0,
    response_tokens: int = 256,
) -> Task:
    """The kind of a prompt is its puzzle; `meta["level"]` is 1, 2 or 3, as many prompts of each.

    Args:
      puzzle: one of `NAMES`, or "all".
      size, test_size: prompts of the two splits.
      seed: of the prompts.
      response_tokens: budget of a response.
    Raises:
      ValueError: unknown puzzle, fewer different prompts than wanted.
    """
    if puzzle not in ("all", *NAMES):
        close = difflib.get_close_matches(puzzle, NAMES, n=1)
        hint = f"; closest: {close[0]}" if close else ""
        raise ValueError(
            f"enigmata: puzzle must be 'all' or one of {', '.join(NAMES)}, got {puzzle!r}{hint}"
        )
    names = NAMES if puzzle == "all" else (puzzle,)
    name = "enigmata" if puzzle == "all" else f"enigmata:{puzzle}"
    classes = list(itertools.product(_LEVELS, names))
    train, test = splits(name, _draw, classes, size, test_size, seed)
    return Task(
        name=name,
        train=train,
        test=test,
        verify=verifier(CHECK, workers=0),
        response_tokens=response_tokens,
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


def _draw(random: Random, chosen: tuple[int, str]) -> tuple[str, Prompt]:
    level, name = chosen
    puzzle = PUZZLES[name].generate(random, level)
    return puzzle.question, puzzle_prompt(puzzle, name, level)
