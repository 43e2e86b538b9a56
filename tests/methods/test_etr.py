"""ETR: a trust region that grows with the advantage and with the spread of the group's outcomes."""

import golden_vectors as golden
import numpy as np
from decisions import decided

from rlvr_jax.methods.clipping.etr import elastic_clip


def test_nothing_widens_a_region_without_advantage_and_spread():
    batch = golden.rollouts("b")
    signals, _ = decided(elastic_clip(0.5, 0.5))
    reward, group = np.asarray(batch.reward), np.asarray(batch.group)
    failed = [g for g in np.unique(group) if not reward[group == g].any()]
    plain = np.isin(group, failed)
    assert plain.any() and not plain.all()
    np.testing.assert_array_equal(np.asarray(signals.clip_low)[plain], 0.2)
    np.testing.assert_array_equal(np.asarray(signals.clip_high)[plain], 0.3)
    assert (np.asarray(signals.clip_low)[reward == 1] > 0.2).all()


def test_a_region_as_wide_as_it_gets_still_clips_from_below():
    signals, _ = decided(elastic_clip(0.5, 50.0))
    assert np.asarray(signals.clip_low).max() == 0.99 and np.asarray(signals.clip_high).max() > 1


def test_the_pass_rate_is_that_of_the_outcomes_whatever_is_trained_on():
    batch = golden.rollouts("b")
    signed = batch.replace(reward=2 * batch.reward - 1)
    found, wanted = decided(elastic_clip(0.0, 0.5), batch=signed), decided(elastic_clip(0.0, 0.5))
    np.testing.assert_array_equal(found[0].clip_low, wanted[0].clip_low)
