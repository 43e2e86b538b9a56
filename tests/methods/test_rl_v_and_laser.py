"""Verdicts on the own response."""

import golden_vectors as golden
import numpy as np
from adapters.common import only
from golden_vectors import array

from rlvr_jax.methods.judges.laser import self_reward_loss
from rlvr_jax.methods.judges.rl_v import verdict_loss
from rlvr_jax.objectives.statistics.groups import finished_rows
from rlvr_jax.types import replace


def test_cut_and_empty_rows_have_no_verdict():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    mask = np.asarray(batch.mask).copy()
    mask[1] = False
    truncated = np.zeros(mask.shape[0], bool)
    truncated[2] = True
    batch = replace(batch, mask=array(mask, bool), truncated=array(truncated, bool))
    assert not np.asarray(finished_rows(batch))[[1, 2]].any()
    for part in (self_reward_loss(1.0, 0.1, -8.0), verdict_loss(1.0)):
        slope = np.asarray(golden.step(only(part).objective, stats, batch).dstats.verdict_logp)
        assert not slope[[1, 2]].any() and slope.any()
