"""Correct responses that later rounds imitate."""

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.types import is_correct


def first_of_correct(batch: Batch) -> np.ndarray:
    """Correct rows, without those whose tokens an earlier row of the group has, bool [B]."""
    rollouts, known = batch.rollouts, set()
    is_first = np.zeros(len(batch), bool)
    texts = np.where(rollouts.mask, rollouts.tokens, -1)
    for row in np.flatnonzero(is_correct(rollouts.outcome)).tolist():
        text = int(rollouts.group[row]), texts[row].tobytes()
        is_first[row] = text not in known
        known.add(text)
    return is_first


def to_imitate(batch: Batch, rows: np.ndarray | bool) -> Batch:
    """The batch with a cleared mask and some supervised rows (bool [B], or one value for all)."""
    nothing = np.zeros_like(batch.rollouts.mask)
    return batch.with_rollouts(mask=nothing, supervised=np.full(len(batch), rows))
