"""What is added to the aggregated loss, what belongs to rows, and the dual clip."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import only
from golden_vectors import array, assert_agrees

from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.regularizers.token_penalties import (
    statistic_penalty,
    statistic_term,
)
from rlvr_jax.objectives.statistics.divergences import k3, k3_clamped
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.surrogates.aggregations import (
    fixed_length_mean,
    rollout_mean_token_sum,
    token_mean,
)
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Signals, TokenStats, replace


@pytest.mark.parametrize("aggregation", [token_mean(), rollout_mean_token_sum()])
def test_a_term_is_added_as_it_is_whatever_the_aggregation(aggregation):
    batch, stats = golden.rollouts("b"), golden.stats("b")
    done = golden.step(only(statistic_term(-2.0, "entropy"), aggregation).objective, stats, batch)
    mean = masked_mean(stats.entropy, batch.mask)
    assert_agrees(done.loss, -2 * mean)
    assert_agrees(done.dstats.entropy, np.where(batch.mask, -2 / np.asarray(batch.mask).sum(), 0))


def test_a_penalty_follows_the_aggregation():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    rows, width = batch.mask.shape
    penalty = statistic_penalty(1.0, "entropy")
    done = golden.step(only(penalty, fixed_length_mean(width)).objective, stats, batch)
    assert_agrees(done.loss, np.where(batch.mask, stats.entropy, 0).sum() / (rows * width))


@pytest.mark.thorough
def test_numbers_of_rows_are_kept_where_they_happen_to_be_as_many_as_tokens():
    batch = golden.rollouts("b")
    values = jnp.ones(batch.mask.shape)
    seen = {}

    def apply(signals, context, state):
        seen["rows"] = context.rollouts.records["critic_values"]
        seen["tokens"] = context.rollouts.records["values"]
        return signals, state, {}

    look = Transform(apply, reads={"critic_values", "values"})
    batch = batch.replace(critic_values=values, values=values)
    only(look).objective.loss(golden.stats("b"), batch, {}, jax.random.key(0))
    assert np.asarray(seen["rows"]).all()
    np.testing.assert_array_equal(seen["tokens"], batch.mask)


def dual_clipped(ratio, advantage):
    signals = replace(
        Signals.neutral(array(np.ones((1, 1)), bool), np.float64),
        advantage=jnp.full((1, 1), advantage),
    )
    surrogate = ppo_clip(0.2, 0.2, dual=3.0)

    def loss(logp):
        context = Context(TokenStats(logp=logp), golden.rollouts("b"), jnp.zeros((1, 1)), None)
        prepared = surrogate.prepare(signals, context)
        return surrogate.loss(prepared, context)[0, 0]

    return jax.value_and_grad(loss)(jnp.log(jnp.full((1, 1), ratio)))


@pytest.mark.thorough
def test_the_dual_clip_bounds_what_a_negative_advantage_costs():
    value, slope = dual_clipped(10.0, -2.0)
    assert_agrees(value, 6.0)
    assert slope[0, 0] == 0
    value, slope = dual_clipped(2.0, -2.0)
    assert_agrees(value, 4.0)
    assert_agrees(slope[0, 0], 4.0)
    assert_agrees(dual_clipped(10.0, 2.0)[0], -2.4)  # the ordinary clip


def test_a_dual_clip_that_would_cut_into_the_trust_region_is_refused():
    with pytest.raises(ValueError, match="ppo_clip: dual must be above 1, got 1"):
        ppo_clip(0.2, 0.2, dual=1.0)


def test_clamped_k3_is_flat_beyond_ten_nats_and_k3_below():
    reference, old = jnp.zeros(3), jnp.zeros(3)
    logp = jnp.asarray([-1.0, -3.0, -1000.0])
    value, pull_back = jax.vjp(lambda x: k3_clamped(x, reference, old), logp)
    assert_agrees(value, [k3(logp, reference, old)[0], 10, 10])
    (slope,) = pull_back(jnp.ones(3))
    assert slope[0] < 0 and not np.asarray(slope)[1:].any()
