"""Trust regions and penalties that differ from token to token."""

import golden_vectors as golden
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.clipping.etr import elastic_clip
from rlvr_jax.methods.entropy.archer import clip_by_entropy, kl_by_entropy
from rlvr_jax.objectives import Context, masked_mean
from rlvr_jax.objectives.statistics.divergences import k3_clamped
from rlvr_jax.types import Signals, replace


def decided(transform, stats=None, batch=None):
    """Signals and metrics after a transform; A is the reward, the half-widths are 0.2 and 0.3."""
    batch = golden.rollouts("b") if batch is None else batch
    stats = golden.stats("b") if stats is None else stats
    signals = Signals.neutral(batch.mask, np.float64)
    signals = replace(
        signals,
        advantage=signals.advantage + batch.reward[:, None],
        clip_low=signals.weight * 0.2,
        clip_high=signals.weight * 0.3,
    )
    context = Context(stats, batch, batch.old_logp, None)
    signals, _, metrics = transform.apply(signals, context, ())
    return signals, metrics


def with_equal_entropies():
    stats = golden.stats("b")
    return replace(stats, entropy=array(np.ones(stats.logp.shape), float))


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
    signed = replace(batch, reward=2 * batch.reward - 1)
    found, wanted = decided(elastic_clip(0.0, 0.5), batch=signed), decided(elastic_clip(0.0, 0.5))
    np.testing.assert_array_equal(found[0].clip_low, wanted[0].clip_low)


def test_equal_entropies_are_of_the_low_class():
    signals, metrics = decided(clip_by_entropy(0.8, 0.1, 0.4), with_equal_entropies())
    np.testing.assert_array_equal(signals.clip_high, np.full(signals.mask.shape, 0.1))
    assert metrics["high_entropy_fraction"] == 0


def test_a_class_that_is_empty_leaves_the_plain_mean_of_the_other():
    signals, metrics = decided(kl_by_entropy(0.8, 0.7, 5.0), with_equal_entropies())
    batch = golden.rollouts("b")
    kl = k3_clamped(golden.stats("b").logp, batch.reference_logp, batch.old_logp)
    assert metrics["kl_high_entropy"] == 0
    assert_agrees(signals.term, 0.7 * masked_mean(kl, batch.mask))


def test_each_class_has_its_own_denominator():
    signals, metrics = decided(kl_by_entropy(0.5, 0.7, 0.3))
    assert metrics["kl_low_entropy"] > 0 and metrics["kl_high_entropy"] > 0
    wanted = 0.7 * metrics["kl_low_entropy"] + 0.3 * metrics["kl_high_entropy"]
    assert_agrees(signals.term, wanted)


@pytest.mark.parametrize("make", [clip_by_entropy, kl_by_entropy])
def test_a_quantile_outside_its_range_is_refused(make):
    with pytest.raises(ValueError, match=r"quantile must be in \[0, 1\], got 1.5"):
        make(1.5, 0.1, 0.1)
