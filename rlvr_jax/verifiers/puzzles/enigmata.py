"""Enigmata's puzzles under one check: gold["task"] names the puzzle, a block holds the answer.

The rules are in one file per puzzle. Sudoku and zebra have one solution, proved when they are made.
In the others every solution counts.

Source: https://github.com/BytedTsinghua-SIA/Enigmata (the tasks). Its verifiers run the model's
text as code in eleven of them, and none of them is used here.
"""

import importlib
from types import ModuleType
from typing import Any

from rlvr_jax.verifiers.answers import in_fence
from rlvr_jax.verifiers.grade import Grade

_NAMES = (
    "binario campsite hamiltonian hitori kakurasu light_up magic_square maze minesweeper skyscraper"
    " slant sliding stack_permutation star_battle sudoku tic_tac_toe zebra"
)
# Each has `LEVELS`, `generate(random, level)` for a level from 1 on, and `check(answer, gold)`.
PUZZLES: dict[str, ModuleType] = {
    name: importlib.import_module(f"rlvr_jax.verifiers.puzzles.{name}") for name in _NAMES.split()
}

extract = in_fence


def check(answer: str, gold: dict[str, Any]) -> bool | Grade | None:
    """Whether a block solves the instance; ungraded if the puzzle is unknown."""
    puzzle = PUZZLES.get(gold["task"])
    return None if puzzle is None else puzzle.check(answer, gold)
