"""ROSE: rollouts branch where likely tokens have different meanings."""

import numpy as np
from tree_walks import walked

from rlvr_jax.methods.trees.rose import branch_at_best


def test_branches_of_rose_begin_at_the_largest_metric():
    def late(entropy, likeness, largest):
        del likeness, largest
        return np.broadcast_to(np.arange(entropy.shape[1]), entropy.shape)

    for found in walked(branch_at_best(fresh=0.0, metric=late, top=2)):
        rollouts = found.batch.rollouts
        for rows in found.batch.groups:
            for place, row in enumerate(rows[1:], 1):
                before = rollouts.length[rows[:place]].max() - 1
                wanted = before if before > 0 else -1
                assert rollouts.branch_position[row] == wanted
    for found in walked(branch_at_best(fresh=1.0, top=2)):
        assert found.metrics["branched_rows"] == 0 and np.all(found.batch.rollouts.parent == -1)
