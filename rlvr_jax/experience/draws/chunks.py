"""Answers that are written in chunks, each in a context of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch, concatenate

__all__ = []


def by_trace(parts: Sequence[Batch], traces: np.ndarray, asks: Sequence[Ask]) -> Batch:
    """The chunks of each answer after one another, answers in the order of the asks.

    Args:
      traces: number of the answer of each row of the parts.
    """
    order = np.argsort(traces, kind="stable")
    trace = traces[order].astype(np.int32)
    group_of = np.repeat(np.arange(len(asks), dtype=np.int32), [ask.samples for ask in asks])
    whole = concatenate(parts).take(order)
    whole = whole.with_rollouts(trace=trace, group=group_of[trace]).renumbered()
    truncated = whole.rollouts.truncated[whole.last_of_trace]
    return replace(
        whole.with_rollouts(truncated=truncated),
        asks=[asks[group] for group in group_of[trace]],
        sample_seconds=sum(part.sample_seconds for part in parts),
    )
