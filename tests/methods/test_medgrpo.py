"""MedGRPO: maps the metrics of several data sets to one reward by quartiles of a fixed policy."""

import jax
import numpy as np
import pytest
from golden_vectors import array
from reward_rows import rollouts

from rlvr_jax.experience import Moment
from rlvr_jax.methods.rewards.medgrpo import by_start_quartiles

NOW = Moment(0, jax.random.key(0), np.zeros(4, np.int32))


@pytest.mark.thorough
def test_quartiles_are_those_of_the_first_batch_in_which_a_cell_occurs():
    own = by_start_quartiles(0, cells=2, slope=3.0, least=0.05)
    state = own.init(9)
    first = rollouts([[0.0], [0.2], [0.4], [0.6]])
    reward, state, told = own.apply(first, state, NOW)
    assert float(reward[0]) < 0.5 < float(reward[3]) and told["reward/median"] == pytest.approx(0.3)
    before = state.quartiles.copy()
    later = rollouts([[0.9], [0.9], [0.9], [0.9]], cell=array([0, 0, 1, 1], np.int32))
    reward, state, told = own.apply(later, state, NOW)
    assert told["median_range"] == pytest.approx(0.6)
    np.testing.assert_array_equal(state.quartiles[0], before[0])
    np.testing.assert_allclose(state.quartiles[1], 0.9, rtol=1e-6)  # float32
    assert state.known.all() and float(reward[0]) > 0.9 and float(reward[2]) == pytest.approx(0.5)
