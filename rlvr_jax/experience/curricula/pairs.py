"""One pair of prompts for a whole run: one that is hard but solvable, one easy but brittle."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for, shuffled_epochs
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import rarest_order
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt
from rlvr_jax.types.parts import part

__all__ = ["choose_pair", "easy_but_brittle", "hard_but_solvable", "rare_event_pair"]

RIGHT_ABOVE = 0.5
"""An answer of a higher outcome is right."""


class _State(NamedTuple):
    """Right answers and all answers of each prompt's rating; the pair, -1 before there is one."""

    right: np.ndarray
    answers: np.ndarray
    pair: np.ndarray


def hard_but_solvable(right: np.ndarray, answers: np.ndarray, most: int) -> np.ndarray:
    """Prompts with at least one and at most c right answers: p in [1/G, c/G]; bool [P].

    Args:
      right, answers: int [P], right answers and all answers; 0 of 0 is in no range.
      most: c.
    """
    return (answers > 0) & (right >= 1) & (right <= most)


def easy_but_brittle(right: np.ndarray, answers: np.ndarray, most: int) -> np.ndarray:
    """Prompts with at least one and at most c wrong answers: p in [1 - c/G, 1 - 1/G]; bool [P]."""
    return hard_but_solvable(answers - right, answers, most)


def choose_pair(right: np.ndarray, answers: np.ndarray, most: int) -> tuple[int, int]:
    """The hard prompt of lowest and the easy one of highest pass rate, -1 where there is none.

    Equal ones by their order; of groups so small that one prompt is both, it is the hard one.
    """
    rate = right / np.maximum(answers, 1)
    hard = np.flatnonzero(hard_but_solvable(right, answers, most))
    first = int(hard[np.argmin(rate[hard])]) if len(hard) else -1
    easy = np.flatnonzero(easy_but_brittle(right, answers, most))
    easy = easy[easy != first]
    return first, int(easy[np.argmax(rate[easy])]) if len(easy) else -1


@part
def rare_event_pair(most: Count, candidates: NonNegativeInt) -> Curriculum:
    """Trains on one hard but solvable and one easy but brittle prompt, each step in turns.

    The pair is chosen once, by pass rates of the first answers to each prompt, as many as a step
    draws of one: of `candidates` prompts that are rated in the first step, and of what that step
    trains on. While no pair is found, steps go through shuffled epochs and rate as many further
    prompts each.

    Args:
      most: c, right answers of the hard prompt and wrong ones of the easy prompt at most.
      candidates: prompts that are rated in a step until there is a pair, at least 0.
    Metrics: rated_prompts; pair/hard and pair/easy, their numbers, and pair/hard_rate and
      pair/easy_rate, their first pass rates, once there are any.
    Raises:
      ValueError: most below 1, or negative candidates.
    """
    epochs = shuffled_epochs()

    def init(setting):
        prompts = len(setting.task.train)
        none = np.zeros(prompts, np.int32)
        return _State(none, none, np.full(2, -1, np.int32))

    def propose(asks, state, turn):
        if (state.pair >= 0).all():
            return asks_for(turn, np.resize(state.pair, turn.setting.prompts))
        trained = epochs.propose(asks, (), turn)
        if turn.round:
            return trained
        order = rarest_order(turn.random(), state.answers)
        new = (state.answers[order] == 0) & ~np.isin(order, [ask.number for ask in trained])
        rated = asks_for(turn, order[new][:candidates])
        return [*(replace(ask, rating=True) for ask in rated), *trained]

    def observe(state, turn, seen, learned):
        del turn, learned
        if (state.pair >= 0).all():
            return state, _told(state)
        right, answers = state.right.copy(), state.answers.copy()
        for visit in visits_of(seen, len(answers)):
            if not answers[visit.number]:
                right[visit.number] = np.sum(visit.outcomes > RIGHT_ABOVE)
                answers[visit.number] = len(visit.outcomes)
        pair = choose_pair(right, answers, most)
        pair = np.array(pair if min(pair) >= 0 else (-1, -1), np.int32)
        state = _State(right, answers, pair)
        return state, _told(state)

    return Curriculum(propose, init, observe)


def _told(state: _State) -> dict[str, float]:
    told = {"rated_prompts": float((state.answers > 0).sum())}
    for name, number in zip(("hard", "easy"), state.pair.tolist(), strict=True):
        if number >= 0:
            told[f"pair/{name}"] = float(number)
            told[f"pair/{name}_rate"] = float(state.right[number] / state.answers[number])
    return told
