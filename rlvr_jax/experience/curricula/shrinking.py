"""A pool of prompts that shrinks, to the hardest or to the unsolved prompts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.experience.curricula.history import History, no_history, visited, visits_of
from rlvr_jax.experience.curricula.picks import of_round, rarest_order
from rlvr_jax.experience.parts import Curriculum


class _State(NamedTuple):
    history: History
    pool: np.ndarray


def picks_from_pool(cut: Callable[[int, np.ndarray, History], np.ndarray]) -> Curriculum:
    """Picks the least sampled prompts of a pool that may change after each step.

    Args:
      cut: (steps so far, pool [P], history) -> pool.
    """

    def init(setting):
        prompts = len(setting.task.train)
        return _State(no_history(prompts), np.ones(prompts, bool))

    def propose(requests, state, turn):
        members = np.flatnonzero(state.pool)
        order = members[rarest_order(turn.random(), state.history.times_sampled[members])]
        short = len(order) < turn.setting.prompts
        return requests_for(
            turn, np.resize(order, turn.setting.prompts) if short else of_round(order, turn)
        )

    def observe(state, turn, seen, learned):
        rates = [(v.number, v.rate) for v in visits_of(seen, len(state.pool), undecided=True)]
        history = visited(state.history, turn.step, rates)
        pool = cut(turn.step + 1, state.pool, history)
        known = pool & ~np.isnan(history.latest)
        metrics = {"pool_prompts": float(pool.sum()), "left_prompts": float((~pool).sum())}
        if known.any():
            metrics["pool_rate"] = float(history.latest[known].mean())
        return _State(history, pool), metrics

    return Curriculum(propose, init, observe)
