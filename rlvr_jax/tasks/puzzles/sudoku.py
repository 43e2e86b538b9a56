"""Sudoku of 4 × 4 or 9 × 9 cells, with one solution each."""

import functools
from random import Random

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE, splits
from rlvr_jax.tasks.puzzles.enigmata import CHECK, puzzle_prompt
from rlvr_jax.verifiers.puzzles.sudoku import generate

_BOXES = {4: (2, 2), 9: (3, 3)}
_KINDS = ("easy", "middle", "hard")


@functools.cache
def sudoku(
    side: int = 4,
    size: int = SIZE,
    test_size: int = TEST_SIZE,
    seed: int = 0,
    response_tokens: int = 256,
) -> Task:
    """Easy, middle and hard puzzles, levels 1 to 3: 6, 8 and 10 open cells, or 30, 38 and 45.

    Args:
      side: 4 or 9.
      size, test_size: prompts of the two splits.
      seed: of the prompts.
      response_tokens: budget of a response.
    Raises:
      ValueError: another side, fewer different prompts than wanted.
    """
    if side not in _BOXES:
        raise ValueError(f"sudoku: side must be 4 or 9, got {side}")

    def draw(random: Random, level: int) -> tuple[str, Prompt]:
        puzzle = generate(random, level, _BOXES[side])
        return puzzle.question, puzzle_prompt(puzzle, _KINDS[level - 1], level)

    levels = range(1, len(_KINDS) + 1)
    train, test = splits(f"sudoku {side}", draw, levels, size, test_size, seed)
    return Task(
        name="sudoku",
        train=train,
        test=test,
        verify=verifier(CHECK, workers=0),
        response_tokens=response_tokens,
        answers=True,
        derived=("meta",),
    )
