"""Archer: looser constraints where the policy is uncertain, tighter ones where it is certain."""

import golden_vectors as golden
import numpy as np
import pytest
from decisions import decided
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.entropy.archer import clip_by_entropy, kl_by_entropy
from rlvr_jax.objectives import masked_mean
from rlvr_jax.objectives.statistics.divergences import k3_clamped


def with_equal_entropies():
    stats = golden.stats("b")
    return stats.replace(entropy=array(np.ones(stats.logp.shape), float))


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
