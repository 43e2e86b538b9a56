"""Implicit PRM: fits a log-ratio to outcomes, whose terms are process rewards."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import only

from rlvr_jax.methods.credit.implicit_prm import contrastive_pairs, cross_entropy, prospect
from rlvr_jax.objectives.regularizers.preferences import (
    ImplicitRewards,
    implicit_reward_loss,
    logistic_pairs,
)


@pytest.mark.parametrize("loss", [logistic_pairs, contrastive_pairs])
def test_without_a_pair_the_loss_and_its_gradient_are_zero(loss):
    alone = jnp.full(3, -1, jnp.int32)

    def value(reward):
        return loss(ImplicitRewards(reward, jnp.ones(3, bool), jnp.ones(3, bool), alone, 1.0))

    found, slope = jax.value_and_grad(value)(jnp.asarray([0.3, -1.0, 2.0]))
    assert found == 0 and not np.asarray(slope).any()


@pytest.mark.parametrize("loss", [logistic_pairs, contrastive_pairs, cross_entropy, prospect])
def test_right_rollouts_are_pulled_up_and_wrong_ones_down(loss):
    correct = jnp.asarray([True, False])
    pair = jnp.asarray([1, 0], jnp.int32)
    given = ImplicitRewards(None, correct, jnp.ones(2, bool), pair, 1.0)
    slope = jax.grad(lambda reward: loss(given._replace(reward=reward)))(jnp.zeros(2))
    assert slope[0] < 0 < slope[1]


def test_a_batch_without_tokens_has_loss_zero():
    batch = golden.rollouts("b")
    empty = batch.replace(mask=batch.mask & False)
    own = only(implicit_reward_loss(0.1, cross_entropy)).objective
    assert golden.step(own, golden.stats("b"), empty).loss == 0
