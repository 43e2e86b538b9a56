"""Sudoku of 4 × 4 or 9 × 9 cells, with one solution each."""

from random import Random
from typing import Literal

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.puzzles.enigmata import MODULE, puzzle_prompt
from rlvr_jax.verifiers.puzzles.sudoku import generate

_BOXES = {4: (2, 2), 9: (3, 3)}
_KINDS = ("easy", "middle", "hard")


@generated()
def sudoku(side: Literal[4, 9] = 4) -> Generated:
    """Easy, middle and hard puzzles (levels 1 to 3): 6, 8, 10 open cells, or 30, 38, 45."""

    def draw(random: Random, level: int) -> Prompt:
        return puzzle_prompt(generate(random, level, _BOXES[side]), _KINDS[level - 1], level)

    return Generated(
        draw,
        range(1, len(_KINDS) + 1),
        seeded=f"sudoku {side}",
        verify=verifier_of(MODULE, workers=0),
        answers=True,
        derived=("meta",),
    )
