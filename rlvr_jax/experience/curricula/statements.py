"""Statements that are proved again: those that are hard, and now and then the others."""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import of_round, weighted_order
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = ["prove_hard_ones", "reprove_chance"]


def reprove_chance(rates: np.ndarray, hard: float, redo: float) -> np.ndarray:
    """1 for statements whose best success rate is below `hard`, else `redo`."""
    return np.where(rates < hard, 1.0, redo)


@part
def prove_hard_ones(hard: Unit, redo: Unit) -> Curriculum:
    """Asks statements that are hard, and with small chances those that are not.

    A statement's rate is the highest that one of its visits had; a lucky one counts for ever. The
    order of a step is a draw without replacement with the chances of `reprove_chance`.

    Args:
      hard: rate below which a statement is hard, in [0, 1].
      redo: chance of the others, in [0, 1], as against 1.
    Metrics: hard_statements, best_rate (mean over those that were visited).
    Raises:
      ValueError: a number outside its range.
    Source: STP, https://github.com/kfdong/STP.
    """

    def init(setting):
        return np.full(len(setting.task.train), -1, np.float32)

    def propose(asks, state, turn):
        del asks
        random, wanted = turn.random(), turn.setting.prompts
        order = weighted_order(random, reprove_chance(state, hard, redo))
        if len(order) < wanted * (turn.round + 1):
            order = np.resize(order if len(order) else np.arange(len(state)), wanted)
            return asks_for(turn, order)
        return asks_for(turn, of_round(order, turn))

    def observe(state, turn, seen, learned):
        del turn, learned
        state = state.copy()
        for visit in visits_of(seen, len(state)):
            state[visit.number] = max(state[visit.number], visit.rate)
        told = {"hard_statements": float(np.sum(state < hard))}
        if (state >= 0).any():
            told["best_rate"] = float(state[state >= 0].mean())
        return state, told

    return Curriculum(propose, init, observe)
