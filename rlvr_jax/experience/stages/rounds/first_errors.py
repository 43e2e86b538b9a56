"""Wrong answers of which the beginning is right: where the first wrong step stands."""

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.types import is_correct


def first_wrong_step(
    step: np.ndarray, score: np.ndarray, mask: np.ndarray, below: float
) -> np.ndarray:
    """The id of the first step whose score, summed over its tokens, is below a bound; int [B].

    Args:
      step: int [B, T], ids of steps, -1 for tokens in none.
      score: [B, T].
      mask: bool [B, T].
      below: the bound.
    Returns:
      -1 for rows without such a step.
    """
    found = np.full(len(step), -1)
    for row, (ids, values, there) in enumerate(zip(step, score, mask, strict=True)):
        for number in np.unique(ids[there & (ids >= 0)]):
            if values[there & (ids == number)].sum() < below:
                found[row] = number
                break
    return found


def tokens_before(step: np.ndarray, mask: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """How many tokens stand before a step of each row, int [B]; 0 for rows without one.

    Args:
      step, mask: as of `first_wrong_step`.
      wrong: its result.
    """
    there = mask & (step == wrong[:, None])
    return np.where(wrong >= 0, there.argmax(axis=1), 0)


def repairable(batch: Batch, below: float) -> tuple[np.ndarray, np.ndarray]:
    """Wrong rows with a first wrong step, bool [B], and how many tokens stand before it, int [B].

    Args:
      batch: of answers whose steps are scored, as `score_steps` does.
      below: score below which a step is wrong.
    """
    rollouts = batch.rollouts
    first = first_wrong_step(rollouts.step, rollouts.process_reward, rollouts.mask, below)
    wrong = batch.decided & ~is_correct(rollouts.outcome)
    return wrong & (first >= 0), tokens_before(rollouts.step, rollouts.mask, first)
