"""The hint that a prompt is asked with: that of its last visit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.views import begin_with, begin_with_most
from rlvr_jax.types.parts import part

__all__ = ["remember_hints"]

UNKNOWN = -1.0
"""The share of a prompt that was not asked yet."""


@part
def remember_hints() -> Curriculum:
    """Asks a prompt with the hint that its last visit ended with; at first with all but one step.

    A response begins with that part of the worked solution, its tokens on the mask; stages such as
    `search_hint` find better ones.

    Reads: Prompt.solution. Metrics: remembered_hint (mean of what is remembered after the step,
      over the prompts that it asked).
    Raises:
      ValueError: when a run is set up, a prompt without a solution.
    Source: SEELE (the link stands in the method's card).
    """

    def init(setting):
        return np.full(len(setting.task.train), UNKNOWN, np.float32)

    def propose(asks, state, turn):
        del turn
        return [replace(ask, view=_hinted(ask, state)) for ask in asks]

    def observe(state, turn, seen, learned):
        del turn, learned
        state, asked = state.copy(), set()
        for batch in seen:
            for rows in batch.groups:
                ask = batch.asks[rows[0]]
                if not ask.rating and ask.number < len(state):
                    state[ask.number] = ask.view.fraction
                    asked.add(ask.number)
        return state, {"remembered_hint": float(np.mean(state[sorted(asked)]))} if asked else {}

    needs, views = frozenset({"solution"}), (begin_with_most(trained=True),)
    return Curriculum(propose, init, observe, reads=needs, views=views)


def _hinted(ask, state):
    steps = len(ask.prompt.solution)
    known = state[ask.number] if ask.number < len(state) else UNKNOWN
    share = (steps - 1) / steps if known == UNKNOWN else round(float(known) * steps) / steps
    return begin_with(share, trained=True, whole_steps=True)
