"""From easy to hard in large pieces, each sorted anew shortly before it is trained on."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import rated_rates
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["difficulty_batches", "pieces_by_difficulty", "resort"]


class _State(NamedTuple):
    """Prompts in the order of training, int32 [P], and their last known difficulty, [P]."""

    order: np.ndarray
    difficulty: np.ndarray


def difficulty_batches(difficulty: np.ndarray, number: int) -> list[np.ndarray]:
    """Positions from easy to hard, in consecutive pieces of equal size, the first ones one longer
    where there is a rest; equal ones keep their order."""
    return np.array_split(np.argsort(difficulty, kind="stable"), number)


def resort(piece: np.ndarray, difficulty: np.ndarray) -> np.ndarray:
    """A piece from easy to hard by new estimates, [n] as the piece; equal ones keep their order."""
    return piece[np.argsort(difficulty, kind="stable")]


@part
def pieces_by_difficulty(number: Count, samples: Count) -> Curriculum:
    """Trains on the prompts from easy to hard, in pieces that are sorted anew before their turn.

    Difficulty is 1 - the pass rate of some answers that are drawn for this alone: in step 0 those
    of the first policy to all prompts, which sort them into pieces; in the last step before each
    piece begins those of the current policy to the prompts of that piece, which stay in it. Step 0
    trains on the first prompts of the task. A piece is gone through once; what is missing for its
    last step comes from its beginning. After the last piece the first one comes again.

    Args:
      number: pieces (K), at least 1 and at most as many as prompts.
      samples: answers that a prompt is rated by.
    Metrics: piece (from 0), rated_prompts, piece_difficulty (mean estimate of its prompts).
    Raises:
      ValueError: a number below 1; when a run begins, more pieces than prompts.
    Source: ADCL (the link stands in the method's card).
    """

    def init(setting):
        prompts = len(setting.task.train)
        if number > prompts:
            raise ValueError(
                f"pieces_by_difficulty: number must be at most the {prompts} prompts, got {number}"
            )
        return _State(np.arange(prompts, dtype=np.int32), np.full(prompts, np.nan, np.float32))

    def pieces(state):
        return np.array_split(state.order, number)

    def now(step, setting, state):
        """The piece of a step, the step's place in it, and whether it is the last one."""
        if step == 0:
            return number - 1, 0, True
        parts = pieces(state)
        steps = [-(-len(part) // (setting.prompts * setting.rounds)) for part in parts]
        place = (step - 1) % sum(steps)
        for piece, length in enumerate(steps):
            if place < length:
                return piece, place, place == length - 1
            place -= length
        raise AssertionError("a place is in a piece")

    def rated(step, piece, last, state):
        if step == 0:
            return state.order
        return pieces(state)[(piece + 1) % number] if last else np.zeros(0, int)

    def propose(asks, state, turn):
        del asks
        setting = turn.setting
        piece, place, last = now(turn.step, setting, state)
        part = pieces(state)[piece] if turn.step else state.order
        first = (place * setting.rounds + turn.round) * setting.prompts
        chosen = part[(first + np.arange(setting.prompts)) % len(part)]
        asked = asks_for(turn, chosen)
        if turn.round:
            return asked
        ratings = asks_for(turn, rated(turn.step, piece, last, state))
        return [*(replace(ask, samples=samples, rating=True) for ask in ratings), *asked]

    def observe(state, turn, seen, learned):
        del learned
        piece, _, last = now(turn.step, turn.setting, state)
        numbers = rated(turn.step, piece, last, state)
        told = {"piece": float(piece) if turn.step else 0.0, "rated_prompts": float(len(numbers))}
        if not len(numbers):
            return state, told
        difficulty = state.difficulty.copy()
        for prompt, rate in rated_rates(seen, len(difficulty)).items():
            difficulty[prompt] = 1 - rate
        # What nobody could grade is hard, as far as anyone knows.
        known = np.nan_to_num(difficulty, nan=1.0)
        if turn.step == 0:
            order = np.concatenate(difficulty_batches(known, number))
        else:
            parts = pieces(state)
            parts[(piece + 1) % number] = resort(numbers, known[numbers])
            order = np.concatenate(parts)
        told["piece_difficulty"] = float(known[numbers].mean())
        return _State(order.astype(np.int32), difficulty), told

    return Curriculum(propose, init, observe)
