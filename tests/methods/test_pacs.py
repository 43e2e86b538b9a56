"""The verdict as a label: gradients at the first update, where all scores are 0."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.pacs import (
    balance_outcomes,
    leave_one_out_score,
    outcome_classification,
    outcome_residual,
)
from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace

GONE = 0


def slope(batch):
    """d loss / d logp, rollouts averaged, where policy and old policy are one."""
    length = np.maximum(np.asarray(batch.mask).sum(axis=1, keepdims=True), 1).astype(float)

    def total(logp):
        context = Context(replace(golden.stats("b"), logp=logp), batch, batch.old_logp, None)
        signals = Signals.neutral(batch.mask, np.float64)
        signals, _, _ = balance_outcomes().apply(signals, context, ())
        values = signals.weight * outcome_classification(1.0).loss(signals, context)
        return jnp.sum(jnp.where(batch.mask, values, 0) / length)

    return np.asarray(jax.grad(total)(batch.old_logp))


@pytest.mark.thorough
def test_at_the_first_update_mixed_groups_are_trained_and_others_cancel():
    batch = golden.rollouts("b")
    found, reward, group = slope(batch), np.asarray(batch.reward), np.asarray(batch.group)
    mixed = [g for g in np.unique(group) if np.ptp(reward[group == g])]
    assert mixed
    for row, token in zip(*np.nonzero(batch.mask), strict=True):
        if group[row] in mixed:
            assert np.sign(found[row, token]) == 1 - 2 * reward[row]
        else:
            assert abs(found[row, token]) < 1e-15


def test_both_outcomes_of_a_group_weigh_the_same():
    batch = golden.rollouts("b")
    signals = Signals.neutral(batch.mask, np.float64)
    context = Context(golden.stats("b"), batch, batch.old_logp, None)
    weight = np.asarray(balance_outcomes().apply(signals, context, ())[0].weight)[:, 0]
    reward, group = np.asarray(batch.reward), np.asarray(batch.group)
    for g in np.unique(group):
        own = group == g
        if np.ptp(reward[own]):
            assert_agrees(weight[own & (reward == 1)].sum(), own.sum() / 2)
        assert_agrees(weight[own].sum(), float(own.sum()))


def test_an_answer_alone_has_score_and_gradient_zero():
    alone = array([0, 1], np.int32)
    value, slope = jax.value_and_grad(lambda x: leave_one_out_score(x, alone)[0])(
        array([3.0, 1.0], float)
    )
    assert value == 0 and not slope.any()


def test_the_residual_of_an_unmoved_policy_is_one_half():
    batch = golden.rollouts("b")
    context = Context(replace(golden.stats("b"), logp=batch.old_logp), batch, batch.old_logp, None)
    signals = Signals.neutral(batch.mask, np.float64)
    signals, _, _ = outcome_residual(1.0).apply(signals, context, ())
    wanted = np.where(batch.mask, np.asarray(batch.reward)[:, None] - 0.5, 0)
    np.testing.assert_array_equal(signals.advantage, wanted)


def test_a_scale_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="outcome_classification: scale must be positive, got 0"):
        outcome_classification(0)


def test_the_scores_of_a_group_of_one_outcome_cancel_on_policy():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    mask = np.asarray(batch.mask).copy()
    mask[GONE] = False
    outcome = array(np.zeros(batch.outcome.shape), batch.outcome.dtype)
    batch = batch.replace(mask=array(mask, bool), old_logp=None, outcome=outcome)
    slope = golden.step(recipe("pacs").objective, stats, batch).dstats.logp
    np.testing.assert_allclose(slope, 0, atol=1e-15)
