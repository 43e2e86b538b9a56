"""A pool of prompts that shrinks: to its hardest ones, or to those that are not yet solved."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import History, no_history, visited, visits_of
from rlvr_jax.experience.curricula.picks import of_round, rarest_order
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Count, Share
from rlvr_jax.types.parts import part

__all__ = ["hardest", "shrinking_pool", "unsolved_pool"]


class _State(NamedTuple):
    history: History
    pool: np.ndarray


def hardest(pool: np.ndarray, rates: np.ndarray, number: int) -> np.ndarray:
    """The pool without all but its `number` prompts of lowest pass rate, bool [P].

    Equal ones stay by their order; a pool that is smaller stays as it is.

    Args:
      pool: bool [P].
      rates: [P]; NaN, which is not known, goes first.
    """
    members = np.flatnonzero(pool)
    left = np.zeros_like(pool)
    left[members[np.argsort(rates[members], kind="stable")][:number]] = True
    return left


@part
def shrinking_pool(after: Sequence[Count], shares: Sequence[Share]) -> Curriculum:
    """Picks from a pool that is cut to its prompts of lowest pass rate after some steps.

    It begins with all P prompts; after `after[i]` steps ⌈shares[i] · P⌉ of the pool stay, by the
    pass rate of each prompt's last visit, which costs no further draw. Prompts that were not
    visited are the first to go. A step takes the least visited prompts of the pool; if these are
    fewer than it asks, they are asked several times, each time as a group of its own.

    Args:
      after: steps, none below the one before, at least 1; of cuts after one step the last counts.
      shares: in (0, 1], as many.
    Metrics: pool_prompts, pool_rate (mean pass rate of its last visits).
    Raises:
      ValueError: steps that fall, shares outside (0, 1], or another number of them.
    """
    if list(after) != sorted(after):
        raise ValueError(f"shrinking_pool: after must not fall, got {tuple(after)}")
    if len(shares) != len(after):
        raise ValueError(f"shrinking_pool: shares must be {len(after)} numbers, got {shares}")
    share_at = dict(zip(after, shares, strict=True))

    def cut(steps, pool, history):
        share = share_at.get(steps)
        if share is None:
            return pool
        return hardest(pool, history.latest, math.ceil(share * len(pool)))

    return picks_from_pool(cut)


@part
def unsolved_pool(after: Count) -> Curriculum:
    """Picks from all prompts at first, and after some steps from those that are not yet solved.

    Solved is a prompt of whose last visit all answers were right; it does not come back. Where all
    are solved, all stay. A step picks as `shrinking_pool` does.

    Args:
      after: steps, at least 1.
    Metrics: pool_prompts, pool_rate (mean pass rate of its last visits).
    Raises:
      ValueError: fewer steps.
    Source: NuRL (the link stands in the method's card).
    """

    def cut(steps, pool, history):
        if steps != after:
            return pool
        left = pool & ~(history.latest >= 1)
        return left if left.any() else pool

    return picks_from_pool(cut)


def picks_from_pool(cut: Callable[[int, np.ndarray, History], np.ndarray]) -> Curriculum:
    """Picks the least visited prompts of a pool that may change after a step.

    Args:
      cut: (steps so far, pool [P], history) -> pool.
    """

    def init(setting):
        prompts = len(setting.task.train)
        return _State(no_history(prompts), np.ones(prompts, bool))

    def propose(asks, state, turn):
        del asks
        members = np.flatnonzero(state.pool)
        order = members[rarest_order(turn.random(), state.history.visits[members])]
        wanted = turn.setting.prompts
        if len(order) < wanted:
            return asks_for(turn, np.resize(order, wanted))
        return asks_for(turn, of_round(order, turn))

    def observe(state, turn, seen, learned):
        del learned
        visits = visits_of(seen, len(state.pool), undecided=True)
        history = visited(
            state.history, turn.step, [v.number for v in visits], [v.rate for v in visits]
        )
        pool = cut(turn.step + 1, state.pool, history)
        known = pool & ~np.isnan(history.latest)
        told = {"pool_prompts": float(pool.sum())}
        if known.any():
            told["pool_rate"] = float(history.latest[known].mean())
        return _State(history, pool), told

    return Curriculum(propose, init, observe)
