"""Advantages that a stage estimates, on whole groups, before it takes them apart."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from rlvr_jax.objectives import Context, Transform
from rlvr_jax.objectives.algebra.inputs import MEASURED, on_mask
from rlvr_jax.types import Rollouts, Signals, TokenStats

__all__ = ["estimator"]


def estimator(advantage: Transform) -> Callable[[Rollouts], np.ndarray]:
    """The function (rollouts) -> [B, T] of an advantage part.

    Args:
      advantage: without state, and of what stands in the rollouts alone, such as
        `group_normalized()`.
    Raises:
      ValueError: a part that reads statistics of a policy.
    """
    if advantage.reads & MEASURED:
        raise ValueError(
            f"estimator: advantage must read no statistic of a policy, got {advantage.label} that"
            f" needs {sorted(advantage.reads)}"
        )

    @jax.jit
    def estimate(rollouts):
        _, clean = on_mask(TokenStats(logp=rollouts.behaviour_logp), rollouts)
        signals = Signals.neutral(clean.mask, clean.reward.dtype)
        # There is no policy yet and nothing random: who reads them fails.
        context = Context(TokenStats(), clean, clean.behaviour_logp, None)
        return advantage.apply(signals, context, ())[0].advantage

    return lambda rollouts: np.asarray(estimate(rollouts))
