"""Rewards on the way: the worked examples, and what cannot be farmed."""

import numpy as np
import pytest
from step_rewards import rollouts

from rlvr_jax.methods.credit.designing_rewards import clip_and_delta
from rlvr_jax.methods.credit.gen_prm_thoughts import thought_rewards


@pytest.mark.slow
def test_splitting_a_thought_gains_nothing_and_repeating_a_good_step_neither():
    batch = rollouts([[1.0, 0.0], [1.0, 1.0, 1.0, 0.0]], [1.0, 1.0], width=12)
    for process in (thought_rewards(), clip_and_delta(0.0)):
        total = np.asarray(process.of(batch, batch.mask)).sum(axis=1)
        assert total[0] == total[1]
