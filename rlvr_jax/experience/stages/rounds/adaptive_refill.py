"""Refilling a batch with as many prompts as it is likely to take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.batch import GroupTest
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.rounds.redraw import refilled
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["KeepRate", "adaptive_refill", "lower_rate", "next_pool"]


class KeepRate(NamedTuple):
    """Lowest share of groups that was kept so far, as a fraction of whole numbers (int32)."""

    kept: np.ndarray
    drawn: np.ndarray


def lower_rate(rate: KeepRate, kept: int, drawn: int) -> KeepRate:
    """min(ρ̂, kept / drawn); of nothing kept, as if it were one group."""
    kept = max(kept, 1)
    if kept * int(rate.drawn) >= int(rate.kept) * drawn:
        return rate
    return KeepRate(np.array(kept, np.int32), np.array(drawn, np.int32))


def next_pool(missing: int, rate: KeepRate) -> int:
    """⌈missing / ρ̂⌉, prompts that are likely to give the groups that are missing."""
    return -(-missing * int(rate.drawn) // int(rate.kept))


@part
def adaptive_refill(when: GroupTest, rounds: Count) -> Stage:
    """Draws further prompts as `refill` does, as many as are likely to fill the batch.

    With ρ = kept / drawn groups of the step so far, ρ̂ = min(ρ̂, ρ) over the run, from 1, and a round
    asks ⌈missing / ρ̂⌉ prompts. The estimate only falls.

    Args:
      when: which groups are dropped, such as `uniform`. Groups without a verdict always are.
      rounds: draws at most, the first one included; a round of more prompts than a step has uses
        up several batches of the curriculum.
    Reads: outcome. Writes: mask, of groups that fill the batch.
    Metrics: those of `refill`; refill/keep_rate (ρ̂).
    Raises:
      ValueError: fewer than one round.
    Source: CodeV-R1, https://github.com/iprc-dip/CodeV-R1 (adaptive DAPO).
    """

    def init(setting):
        del setting
        return KeepRate(np.array(1, np.int32), np.array(1, np.int32))

    def apply(batch, actor, state, turn):
        rate = KeepRate(*state)

        def pool(missing, kept, drawn):
            nonlocal rate
            rate = lower_rate(rate, kept, drawn)
            return next_pool(missing, rate)

        batch, told = refilled(batch, actor, turn, when, rounds, pool)
        return batch, rate, {**told, "refill/keep_rate": int(rate.kept) / int(rate.drawn)}

    return Stage(apply, init, rounds=rounds - 1)
