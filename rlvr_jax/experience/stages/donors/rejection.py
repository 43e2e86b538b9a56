"""Right answers of the step itself, which are imitated at once."""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.imitate_right import first_of_right, to_imitate
from rlvr_jax.types.parts import part

__all__ = ["rejection_sampling"]


@part(by_row=True)
def rejection_sampling() -> Stage:
    """Imitates the right answers of the step, each once, and learns nothing else.

    They are imitated at temperature 1, whatever they were drawn with.

    Reads: outcome. Writes: mask (nothing is on it), supervised, temperature.
    Metrics: imitated_answers (rows).
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        kept = first_of_right(batch)
        heat = np.ones_like(batch.rollouts.temperature)
        return (
            to_imitate(batch.with_rollouts(temperature=heat), kept),
            state,
            {"imitated_answers": float(kept.sum())},
        )

    gives = frozenset({"supervised"})
    return Stage(apply, writes=gives)
