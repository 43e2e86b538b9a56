"""Which rows of a group are learned from, chosen before the advantage is estimated."""

from collections.abc import Callable

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage, Turn
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part(by_row=True, counts=True)
def select_rows(
    choose: Callable[[Batch, np.ndarray, int, Turn], np.ndarray], drawn: Count
) -> Stage:
    """Keeps some rows of each group, of more that were drawn.

    Args:
      choose: (batch, rows of a group, number to keep, turn) -> those that are kept, as many as the
        number; or none, and the group fills its place with its first rows, their mask cleared.
      drawn: rows drawn for each that is kept, at least 1.
    Reads: what `choose` reads. Metrics: selected_rows (share of the drawn ones),
      dropped_groups (share).
    Raises:
      ValueError: `drawn` below 1; when called, a choice of another number.
    """

    def apply(batch, actor, state, turn):
        wanted = turn.setting.samples
        taken, cleared = [], []
        for rows in batch.groups:
            kept = np.asarray(choose(batch, rows, wanted, turn), int)
            if len(kept) not in (0, wanted):
                raise ValueError(
                    f"select_rows: choose must keep {wanted} rows or none, got {len(kept)}"
                )
            taken.append(kept if len(kept) else rows[:wanted])
            cleared += [not len(kept)] * len(taken[-1])
        chosen = batch.take(np.concatenate(taken)).without(np.array(cleared)).renumbered()
        told = {
            "selected_rows": float(len(chosen) / len(batch)),
            "dropped_groups": float(np.mean(cleared)),
        }
        return chosen, state, told

    return Stage(apply, size=lambda samples: drawn * samples)
