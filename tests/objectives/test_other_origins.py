"""Rows of another policy: rehearsed answers, demonstrations, capped weights."""

import golden_vectors as golden
import numpy as np
import pytest
from adapters.common import only

from rlvr_jax.methods.exploration.dph_rl import (
    forward_kl_generator,
    off_policy_divergence,
)
from rlvr_jax.methods.guidance.hpt import imitate_demonstrations


@pytest.mark.thorough
def test_without_rows_of_another_policy_there_is_nothing_to_hold_or_imitate():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    own = batch.replace(off_policy=batch.records["off_policy"] & False)
    for part in (off_policy_divergence(1.0, forward_kl_generator), imitate_demonstrations(1.0, 9)):
        done = golden.step(only(part).objective, stats, own)
        assert done.loss == 0 and not np.asarray(done.dstats.logp).any()
