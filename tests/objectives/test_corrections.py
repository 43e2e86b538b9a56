"""Corrections for a sampler that strays from the policy."""

import golden_vectors as golden
import numpy as np
import pytest
from golden_vectors import assert_agrees
from strays import decided, strayed

from rlvr_jax.methods.agents.asearcher import band_importance
from rlvr_jax.methods.clipping.f_dpg import product_ratio
from rlvr_jax.methods.off_policy.rollout_correction import (
    drop_by_divergence,
    drop_by_ratio,
)
from rlvr_jax.objectives import masked_mean
from rlvr_jax.objectives.transforms.corrections import truncate_importance

ALL = {
    "token": truncate_importance(2.0),
    "normalized": truncate_importance(2.0, normalizer=masked_mean),
    "rollout": truncate_importance(2.0, product_ratio),
    "band": band_importance(0.5, 2.0),
    "ratio": drop_by_ratio(0.9, 1.1),
    "product": drop_by_ratio(0.5, 2.0, product_ratio),
    "divergence": drop_by_divergence(0.1),
}


@pytest.mark.parametrize("name", ALL)
def test_a_sampler_that_agrees_is_not_corrected(name):
    batch = golden.rollouts("b")
    signals, _ = decided(ALL[name], batch=batch.replace(behaviour_logp=batch.old_logp))
    np.testing.assert_array_equal(signals.weight, np.ones(batch.mask.shape))
    np.testing.assert_array_equal(signals.mask, batch.mask)


def test_silenced_tokens_stay_in_the_mask_and_rejected_rollouts_leave_it():
    mask = np.asarray(strayed().mask)
    silenced, metrics = decided(ALL["band"])
    assert metrics["silenced_fraction"] > 0
    np.testing.assert_array_equal(silenced.mask, mask)
    rejected, metrics = decided(ALL["ratio"])
    dropped = mask & ~np.asarray(rejected.mask)
    assert_agrees(metrics["rejected_fraction"], dropped.sum() / mask.sum())
    assert dropped.any() and (dropped == mask)[dropped.any(axis=1)].all()


def test_normalized_weights_have_mean_one():
    mask = strayed().mask
    assert_agrees(masked_mean(decided(ALL["normalized"])[0].weight, mask), 1.0)


def test_corrections_multiply_and_intersect():
    both, _ = decided(ALL["token"], ALL["ratio"], ALL["divergence"])
    first, second, third = (decided(ALL[name])[0] for name in ("token", "ratio", "divergence"))
    np.testing.assert_array_equal(both.mask, second.mask & third.mask)
    np.testing.assert_array_equal(both.weight, first.weight)


def test_a_batch_without_tokens_has_finite_weights():
    batch = strayed()
    batch = batch.replace(mask=batch.mask & False)
    for transform in ALL.values():
        signals, metrics = decided(transform, batch=batch)
        assert np.isfinite(signals.weight).all()
        assert all(np.isfinite(value) for value in metrics.values())


@pytest.mark.parametrize("make", [band_importance, drop_by_ratio])
def test_an_empty_band_is_refused(make):
    with pytest.raises(ValueError, match="0 ≤ low ≤ high, got 2 and 1"):
        make(2, 1)
