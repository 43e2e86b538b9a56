"""Choice of the rows for training, before the advantage is estimated."""

from collections.abc import Callable

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage, StepContext
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part(by_row=True, counts=True)
def select_rows(
    choose: Callable[[Batch, np.ndarray, int, StepContext], np.ndarray], oversampling: Count
) -> Stage:
    """Samples larger groups and selects some rows of each.

    Args:
      choose: (batch, rows of a group, number N of selected rows, turn) -> N rows. If it returns
        none, the first N rows stay with a cleared mask.
      oversampling: sampled rows for each selected row.
    Metrics: selected_rows (fraction of the sampled rows), dropped_groups (fraction of the groups).
    Raises:
      ValueError: when called, `choose` returns another number of rows.
    """

    def apply(batch, actor, state, turn):
        wanted = turn.setting.samples
        taken, cleared = [], []
        for rows in batch.groups:
            selected = np.asarray(choose(batch, rows, wanted, turn), int)
            if len(selected) not in (0, wanted):
                raise ValueError(
                    f"select_rows: choose must select {wanted} rows or none, got {len(selected)}"
                )
            taken.append(selected if len(selected) else rows[:wanted])
            cleared += [not len(selected)] * len(taken[-1])
        chosen = batch.take(np.concatenate(taken)).without(np.array(cleared)).renumbered()
        metrics = {
            "selected_rows": float(len(chosen) / len(batch)),
            "dropped_groups": float(np.mean(cleared)),
        }
        return chosen, state, metrics

    return Stage(apply, size=lambda samples: oversampling * samples)


@part
def mask_truncated() -> Stage:
    """Removes truncated responses from the loss; their rewards still count in their groups."""

    def apply(batch, actor, state, turn):
        return batch.without(batch.rollouts.truncated), state, {}

    return apply
