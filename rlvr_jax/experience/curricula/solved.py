"""Prompts that the first policy always solves, found out before the first update."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["rate_first", "set_solved_aside"]


@part
def rate_first(rated: Count, samples: Count) -> Curriculum:
    """Has some prompts answered before any update: drawn and graded in step 0, never trained.

    It comes behind a part that picks prompts.

    Args:
      rated: prompts, drawn without replacement; all there are, if they are fewer.
      samples: answers to each.
    Raises:
      ValueError: a number below 1.
    """

    def propose(asks, state, turn):
        del state
        if turn.step or turn.round:
            return asks
        chosen = turn.random().permutation(len(turn.setting.task.train))[:rated]
        ratings = [replace(ask, samples=samples, rating=True) for ask in asks_for(turn, chosen)]
        return [*ratings, *asks]

    return Curriculum(propose)


@part
def set_solved_aside(rated: Count, samples: Count) -> Curriculum:
    """Asks no prompt that the first policy answered right every time.

    In step 0, before any update, some prompts are rated: drawn and graded, never trained. Those of
    which all answers were right are asked no more: in their place stand others, drawn uniformly
    from the prompts that the step does not have. It comes behind a part that picks prompts.

    Args:
      rated: prompts that are rated, drawn without replacement; all there are, if they are fewer.
      samples: answers to each.
    Metrics: solved_prompts (set aside).
    Raises:
      ValueError: a number below 1.
    Source: DPH-RL, https://github.com/seamoke/DPH-RL.
    """

    def init(setting):
        return np.zeros(len(setting.task.train), bool)

    def propose(asks, solved, turn):
        random = turn.random()
        first = turn.step == 0 and turn.round == 0
        chosen = random.permutation(len(solved))[:rated] if first else ()
        ratings = [replace(ask, samples=samples, rating=True) for ask in asks_for(turn, chosen)]
        taken = {ask.number for ask in asks}
        free = [n for n in random.permutation(len(solved)) if not solved[n] and n not in taken]
        others = iter(asks_for(turn, free[: len(asks)]))
        left = [
            next(others, ask) if ask.number < len(solved) and solved[ask.number] else ask
            for ask in asks
        ]
        return [*ratings, *left]

    def observe(solved, turn, seen, learned):
        del learned, turn
        solved = solved.copy()
        for batch in seen:
            for ask, outcomes in zip(
                (batch.asks[rows[0]] for rows in batch.groups), batch.outcomes(), strict=True
            ):
                if ask.rating and ask.number < len(solved):
                    solved[ask.number] = bool((outcomes == 1).all())
        return solved, {"solved_prompts": float(solved.sum())}

    return Curriculum(propose, init, observe)
