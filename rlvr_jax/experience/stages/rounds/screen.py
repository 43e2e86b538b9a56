"""Prompts that the policy's likeliest answer does not solve are the ones that are learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["screen", "unsolved"]


def unsolved(outcomes: np.ndarray) -> np.ndarray:
    """Groups without an answer that earns everything, bool [G]; one without a verdict is kept."""
    return ~(np.nan_to_num(outcomes) >= 1).any(axis=1)


@part(by_row=True, size=lambda samples: 1)
def screen(rounds: Count = 1) -> Stage:
    """Draws the rollouts of a step for those prompts alone whose first answer was not right.

    It stands first, behind `ask_greedily`. Further prompts are asked until there are as many as a
    step has, or the rounds are used up; then the batch is smaller. Where every prompt is solved,
    nothing is learned from.

    Args:
      rounds: batches of prompts that are asked at most, at least 1.
    Reads: outcome. Draws: the samples of a step for each prompt that is kept.
    Metrics: screened_prompts (asked), solved_greedily (share of them).
    Raises:
      ValueError: fewer than one round.
    Source: SELF, https://github.com/mail-research/SELF-llm-interference.
    """

    def apply(batch, actor, state, turn):
        wanted, asked, kept = turn.setting.prompts, 0, []
        first = batch
        for number in range(rounds):
            outcomes = batch.outcomes()
            asked += len(outcomes)
            kept += batch.asks_of(unsolved(outcomes))
            more = turn.more(wanted - len(kept)) if number + 1 < rounds > 1 else []
            if len(kept) >= wanted or not more:
                break
            batch = actor.grade(actor.draw(more))
        told = {"screened_prompts": float(asked), "solved_greedily": 1 - len(kept) / asked}
        if not kept:
            return first.without(np.ones(len(first), bool)), state, told
        samples = turn.setting.samples
        asks = [replace(ask, samples=samples, temperature=None) for ask in kept[:wanted]]
        return actor.grade(actor.draw(asks, turn.key)), state, told

    return Stage(apply, rounds=rounds - 1)
