"""Right answers that are kept, and imitated in later rounds."""

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.types import is_correct


def first_of_right(batch: Batch) -> np.ndarray:
    """Right rows that are the first with their tokens in their group, bool [B]."""
    rollouts, known = batch.rollouts, set()
    kept = np.zeros(len(batch), bool)
    texts = np.where(rollouts.mask, rollouts.tokens, -1)
    for row in np.flatnonzero(is_correct(rollouts.outcome)).tolist():
        text = int(rollouts.group[row]), texts[row].tobytes()
        kept[row] = text not in known
        known.add(text)
    return kept


def to_imitate(batch: Batch, rows: np.ndarray) -> Batch:
    """The batch with nothing on the mask, and some rows supervised.

    Args:
      rows: bool [B].
    """
    nothing = np.zeros_like(batch.rollouts.mask)
    return batch.with_rollouts(mask=nothing, supervised=np.asarray(rows))
