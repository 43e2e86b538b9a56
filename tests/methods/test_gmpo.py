"""GMPO: the geometric mean of the token ratios, each clipped before the mean."""

import jax.numpy as jnp
import numpy as np
import pytest
from clipped_runs import run
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.clipping.gmpo import geometric_mean_clip, trusted_log_ratio
from rlvr_jax.objectives import importance_weighted
from rlvr_jax.objectives.statistics.ratios import sequence_ratio
from rlvr_jax.types import Signals, replace

ROUND_TRIP = 1e-13  # float64, through expm1 and log1p


@pytest.mark.thorough
def test_a_geometric_mean_without_limit_is_the_unclipped_sequence_ratio():
    found, wanted = run(geometric_mean_clip(np.inf)), run(importance_weighted(sequence_ratio))
    assert_agrees(found.values, wanted.values)
    assert_agrees(found.slope, wanted.slope)


def test_the_log_ratio_is_cut_on_the_side_it_is_pushed_to():
    signals = Signals.neutral(array(np.ones((1, 3)), bool), np.float64)
    for advantage, wanted in ((1.0, [-2, 0.1, 0.5]), (-1.0, [-0.5, 0.1, 2]), (0.0, [0, 0, 0])):
        limits = {"clip_low": -np.expm1(-0.5), "clip_high": np.expm1(0.5), "advantage": advantage}
        full = {name: jnp.full_like(signals.weight, value) for name, value in limits.items()}
        found = trusted_log_ratio(replace(signals, **full), array([[-2, 0.1, 2]], float))
        np.testing.assert_allclose(found[0], wanted, rtol=ROUND_TRIP)
