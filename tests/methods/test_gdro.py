"""Bins of difficulty, and the adversary over them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import rollouts, spec, stats

from rlvr_jax.methods.curricula.gdro import (
    adversarial_fractions,
    bin_losses,
    difficulty_bins,
    hard_bins_first,
    updated_scores,
)
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce

EDGES = (0.4, 0.75)


def test_an_accuracy_on_an_edge_is_in_the_upper_bin():
    found = difficulty_bins(jnp.asarray([0.0, 0.39, 0.4, 0.75, 1.0]), EDGES)
    np.testing.assert_array_equal(found, [0, 0, 1, 2, 2])


def test_a_bin_is_left_only_well_past_its_edge():
    accuracy = jnp.asarray([0.42, 0.44, 0.38, 0.36, 0.9, 0.1])
    previous = jnp.asarray([0, 0, 1, 1, 0, 2])
    np.testing.assert_array_equal(difficulty_bins(accuracy, EDGES, previous), [0, 1, 1, 0, 2, 0])


def test_absent_bins_keep_their_score_and_have_no_share():
    there = jnp.asarray([True, True, False])
    losses, present = bin_losses(jnp.asarray([1.0, 0.5, 9.0]), jnp.asarray([0, 2, 1]), there, 3)
    scores, seen = updated_scores(
        jnp.asarray([0.2, 0.7, 0.0]), jnp.asarray([True, True, False]), losses, present, 0.1
    )
    np.testing.assert_allclose(scores, [0.9 * 0.2 + 0.1, 0.7, 0.5], atol=1e-15)
    np.testing.assert_array_equal(seen, [True, True, True])
    fraction = np.asarray(adversarial_fractions(scores, present, 0.65, 0.01))
    assert fraction[1] == 0 and abs(fraction.sum() - 1) < 1e-15


def test_weights_are_1_at_first_and_follow_the_losses_of_earlier_updates():
    own = objective(
        group_normalized(), [hard_bins_first()], surrogate=reinforce(), aggregation=token_mean()
    )
    batch, state = rollouts("b"), own.init(spec(rollouts("b")))
    plain = objective(group_normalized(), surrogate=reinforce(), aggregation=token_mean())
    arguments = (stats("b"), batch)
    wanted = plain.signals(*arguments, {}, jax.random.key(0)).advantage
    first = own.signals(*arguments, state, jax.random.key(0)).advantage
    np.testing.assert_allclose(first, wanted, atol=1e-15)
    _, (state, _) = own.loss(*arguments, state, jax.random.key(0))
    # One mixed group (2 of 4 right), one solved, one hopeless: mean losses 0.5, 0 and 1.
    np.testing.assert_allclose(state["hard_bins_first"][0], [1.0, 0.5, 0.0], atol=1e-15)
    second = own.signals(*arguments, state, jax.random.key(0)).advantage
    present = jnp.ones(3, bool)
    fraction = np.asarray(adversarial_fractions(jnp.asarray([1.0, 0.5, 0.0]), present, 0.65, 0.01))
    factor = fraction[[1, 2, 0]].repeat(4)[:, None] / fraction.mean()
    np.testing.assert_allclose(second, factor * wanted, atol=1e-14)


@pytest.mark.parametrize("edges", [(0.7, 0.4), (40, 75), (0.0, 0.5)])
def test_edges_that_do_not_ascend_between_0_and_1_are_refused(edges):
    with pytest.raises(ValueError, match="hard_bins_first: edges must ascend in"):
        hard_bins_first(edges=edges)
