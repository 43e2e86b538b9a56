"""A set of prompts that mastered ones leave, and that the easiest of the others enter."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import rated_rates, visits_of
from rlvr_jax.experience.curricula.picks import of_round, rarest_order
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part

__all__ = ["Mastery", "exchanged", "mastery_pool", "stages_by_difficulty"]

DISCARDED, ACTIVE, WAITING = 0, 1, 2


class Mastery(NamedTuple):
    """Of each of P prompts.

    Fields:
      active, waiting: bool [P], in the set, and in the queue.
      difficulty: float32 [P], pass rate of the reference model: larger is easier; NaN: unknown.
      total: float32 [P], sum of the pass rates of this epoch.
      visits: int32 [P], of this epoch.
    """

    active: np.ndarray
    waiting: np.ndarray
    difficulty: np.ndarray
    total: np.ndarray
    visits: np.ndarray


def stages_by_difficulty(difficulty: np.ndarray, pending: float, discard: float) -> np.ndarray:
    """What becomes of a prompt at first: 0 discarded, 1 in the first set, 2 in the queue; int [P].

    Args:
      difficulty: pass rate of the reference model, larger is easier.
      pending: up to which a prompt waits.
      discard: from which on a prompt is left out.
    """
    return np.where(
        difficulty >= discard, DISCARDED, np.where(difficulty <= pending, WAITING, ACTIVE)
    )


def exchanged(
    active: np.ndarray,
    waiting: np.ndarray,
    accuracy: np.ndarray,
    difficulty: np.ndarray,
    mastered: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The set and the queue once mastered prompts have left, in order of index, and as many waiting
    ones have entered, the easiest first; where fewer wait, the last mastered ones stay.

    Args:
      active, waiting: bool [P].
      accuracy: [P] of the epoch; NaN is not mastered.
      difficulty: [P], larger is easier; of equal ones the lower index first.
      mastered: accuracy above which a prompt leaves.
    """
    leaving = np.flatnonzero(active & (np.nan_to_num(accuracy) > mastered + ROUNDING))
    queue = np.flatnonzero(waiting)
    entering = queue[np.argsort(-difficulty[queue], kind="stable")]
    number = min(len(leaving), len(entering))
    active, waiting = active.copy(), waiting.copy()
    active[leaving[:number]] = False
    active[entering[:number]] = True
    waiting[entering[:number]] = False
    return active, waiting


@part
def mastery_pool(mastered: Unit, pending: Unit, discard: Unit, samples: Count = 8) -> Curriculum:
    """Picks from a set of prompts that trades what is mastered for the easiest of what waits.

    Difficulty is `Prompt.meta["difficulty"]`, the pass rate of a reference model (larger is
    easier). Where a prompt has none, all are rated in step 0 by the policy that the run begins
    with, and step 0 trains on some of them at random. An epoch ends with the step in which every
    prompt of the set has been visited. If no prompt is easy enough to begin with, the easiest
    waiting ones are the first set, as many as a step asks.

    Args:
      mastered: accuracy in an epoch above which a prompt leaves.
      pending: pass rate up to which a prompt waits.
      discard: pass rate from which on a prompt is left out.
      samples: answers that a prompt is rated by.
    Reads: Prompt.meta. Metrics: active_prompts, waiting_prompts, mastered_prompts (that left).
    Raises:
      ValueError: a bound outside [0, 1], pending not below discard, no samples.
    Source: Dr.SCI (the link stands in the method's card).
    """
    if not pending < discard:
        raise ValueError(f"mastery_pool: pending must be below discard {discard}, got {pending}")

    def begun(difficulty, prompts) -> Mastery:
        stage = stages_by_difficulty(difficulty, pending, discard)
        active, waiting = stage == ACTIVE, stage == WAITING
        if not active.any():
            # The easiest of those that are not too easy; all where there are none of these either.
            easiest = np.argsort(-np.where(waiting, difficulty, -np.inf), kind="stable")
            active[easiest[: min(prompts, waiting.sum())]] = True
            waiting = waiting & ~active
            active = active if active.any() else np.ones_like(active)
        size = len(difficulty)
        nothing = np.zeros(size, np.float32), np.zeros(size, np.int32)
        return Mastery(active, waiting, difficulty.astype(np.float32), *nothing)

    def init(setting):
        known = [prompt.meta.get("difficulty", np.nan) for prompt in setting.task.train]
        difficulty = np.array(known, np.float32)
        if np.isnan(difficulty).any():
            size = len(difficulty)
            every, none = np.ones(size, bool), np.zeros(size, bool)
            unknown = np.full(size, np.nan, np.float32)
            zeros = np.zeros(size, np.float32), np.zeros(size, np.int32)
            return Mastery(every, none, unknown, *zeros)
        return begun(difficulty, setting.prompts)

    def propose(asks, state, turn):
        del asks
        members = np.flatnonzero(state.active)
        order = members[rarest_order(turn.random(), state.visits[members])]
        wanted = turn.setting.prompts
        short = len(order) < wanted * (turn.round + 1)
        asked = asks_for(turn, np.resize(order, wanted) if short else of_round(order, turn))
        if turn.step or turn.round or not np.isnan(state.difficulty).any():
            return asked
        ratings = asks_for(turn, range(len(state.active)))
        return [*(replace(ask, samples=samples, rating=True) for ask in ratings), *asked]

    def observe(state, turn, seen, learned):
        del learned
        if turn.step == 0 and np.isnan(state.difficulty).any():
            # What nobody could grade waits behind all others.
            difficulty = np.zeros(len(state.active), np.float32)
            for number, rate in rated_rates(seen, len(difficulty)).items():
                difficulty[number] = rate
            return _told(begun(difficulty, turn.setting.prompts), 0)
        total, visits = state.total.copy(), state.visits.copy()
        # What nobody can grade is visited all the same, or the epoch would never end.
        for visit in visits_of(seen, len(total), undecided=True):
            total[visit.number] += np.nan_to_num(visit.rate)
            visits[visit.number] += 1
        state = state._replace(total=total, visits=visits)
        if not (visits[state.active] > 0).all():
            return _told(state, 0)
        accuracy = total / np.maximum(visits, 1)
        after, waiting = exchanged(
            state.active, state.waiting, accuracy, state.difficulty, mastered
        )
        left = float(np.sum(state.active & ~after))
        fresh = np.zeros_like(total), np.zeros_like(visits)
        return _told(Mastery(after, waiting, state.difficulty, *fresh), left)

    return Curriculum(propose, init, observe)


def _told(state: Mastery, left: float) -> tuple[Mastery, dict[str, float]]:
    return state, {
        "active_prompts": float(state.active.sum()),
        "waiting_prompts": float(state.waiting.sum()),
        "mastered_prompts": float(left),
    }
