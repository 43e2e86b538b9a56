"""Interference, cliffs and differential information: derivatives, examples, limits."""

import functools

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import recipe_of
from numpy.testing import assert_allclose

from rlvr_jax.analysis.arrays import log_softmax
from rlvr_jax.analysis.updates.did import (
    differential_information,
    effective_samples,
    prefers,
    rejected_distribution,
    sampled_entropy,
    set_entropy,
)
from rlvr_jax.analysis.updates.interference import (
    interference,
    keep_hard,
    right_answer_logp,
    row_gradients,
    winner_slope,
)
from rlvr_jax.analysis.updates.policy_cliff import cliff_curve, distance, distance_bound, optimum
from rlvr_jax.objectives.advantages.group_relative import group_centered, group_normalized
from rlvr_jax.objectives.regularizers.token_penalties import entropy_bonus
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Rollouts, TokenStats

RTOL = 1e-12  # float64, sums of some tens of terms
DIGITS = 1e-6  # of the worked examples
SECOND_ORDER = 1e-3  # of a step of 1e-5, where the curvature is of order 10


def rows(seed=0, number=6, width=4, features=3, vocabulary=5):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(number, width, features))
    weights = rng.normal(size=(features, vocabulary))
    mask = np.arange(width) < rng.integers(1, width + 1, number)[:, None]
    tokens = rng.integers(0, vocabulary, (number, width))
    return hidden, weights, tokens, mask


@pytest.mark.thorough
def test_row_gradients_are_the_derivative_by_the_last_layer():
    hidden, weights, tokens, mask = rows()

    def mean_logp(w):
        logp = jax.nn.log_softmax(jnp.asarray(hidden) @ w)
        own = jnp.take_along_axis(logp, jnp.asarray(tokens)[..., None], axis=-1)[..., 0]
        return jnp.sum(jnp.where(mask, own, 0), axis=1) / mask.sum(axis=1).astype(float)

    wanted = jax.jacobian(mean_logp)(jnp.asarray(weights))
    assert_allclose(row_gradients(hidden, hidden @ weights, tokens, mask), wanted, rtol=1e-10)


def test_influence_is_what_a_small_step_does_to_right_answers():
    hidden, weights, tokens, mask = rows()
    group, right = np.repeat([0, 1], 3), np.array([1, 0, 0, 1, 1, 0], bool)
    advantage = np.array([1.0, -0.5, -0.5, 0.3, 0.3, -0.6])
    gradients = row_gradients(hidden, hidden @ weights, tokens, mask)
    rate = 1e-5
    found = interference(gradients, advantage, right, group, rate)

    def answers(w):
        own = np.take_along_axis(log_softmax(hidden @ w), tokens[..., None], axis=-1)[..., 0]
        return right_answer_logp(own, mask, right, group)

    for problem in (0, 1):
        step = np.einsum("b,bdv->dv", np.where(group == problem, advantage, 0), gradients) / 3
        moved = answers(weights + rate * step) - answers(weights)
        assert_allclose(
            found.influence[problem], moved, rtol=1e-3
        )  # second order: rate · curvature


def test_groups_without_a_signal_do_not_dilute_the_shares():
    gradients = np.array([[1.0], [-1.0], [5.0]])
    found = interference(gradients, [1.0, 1.0, 0.0], [True, True, False], [0, 1, 2])
    assert found.negative_fraction == 1 and found.mean_off_diagonal == -1
    alone = interference(gradients[:1], [1.0], [True], [0])
    assert alone.negative_fraction == 0 and alone.influence.tolist() == [[1]]


def test_the_winner_takes_all_where_the_likely_gain():
    before = np.array([-3.0, -2.0, -1.0, 0.0])
    assert_allclose(winner_slope(before, 0.1 * before, [1, 1, 1, 0]), 0.1, rtol=RTOL)
    assert winner_slope(before, before, [1, 0, 0, 0]) == 0
    assert keep_hard([0.4, 0.5]).tolist() == [True, False]


def test_differential_information_of_equal_policies_is_flat():
    logp = np.log([0.2, 0.3, 0.5])
    log_q = differential_information(logp, logp)
    assert_allclose(set_entropy(log_q), np.log(3), rtol=RTOL)
    assert_allclose(rejected_distribution(logp, logp), logp, rtol=RTOL)
    assert prefers(0) == 0.5


def test_the_sampled_entropy_is_the_true_one_on_average():
    """Exact expectation over one sample is biased; with many the estimate comes close."""
    policy, reference = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.2, 0.6])
    q = policy / reference / np.sum(policy / reference)
    rng = np.random.default_rng(0)
    sampled = rng.choice(3, 200_000, p=policy)
    found = sampled_entropy(np.log(policy)[sampled], np.log(reference)[sampled])
    # deviation of the estimate: a few times 1 / √200000
    assert_allclose(found, -np.sum(q * np.log(q)), atol=0.01)


def test_one_sample_that_carries_all_weight_counts_once():
    assert_allclose(effective_samples([-1.0, -1.0, -1.0, -1.0]), 4, rtol=RTOL)
    assert_allclose(effective_samples([-1.0, -1.0, -90.0]), 1, rtol=RTOL)


VALUES = np.array([1.0, 1.0, 0.0])
FIRST = np.array([1.0, 0.0, 0.0])


def test_the_cliff_of_the_worked_example():
    assert distance(optimum(VALUES + 1e-3 * FIRST, 0), optimum(VALUES - 1e-3 * FIRST, 0)) == 2
    found = cliff_curve(VALUES, FIRST, [0.001, 0.01], [0.1, 0.01, 1.0])
    assert_allclose(
        [found[0, 0], found[1, 1], found[2, 0]], [0.005, 0.462117, 0.000488], atol=DIGITS
    )
    assert_allclose(distance_bound(VALUES, VALUES + 0.001 * FIRST, 0.1), 0.01, rtol=1e-9)
    assert distance_bound(VALUES, VALUES + FIRST, 0) == np.inf
    with pytest.raises(ValueError, match="optimum: temperature must be at least 0, got -1"):
        optimum(VALUES, -1)


def test_the_bound_holds_and_noise_costs_what_it_says():
    rng = np.random.default_rng(0)
    for _ in range(50):
        first, second, tau = rng.normal(size=5), rng.normal(size=5), rng.uniform(0.1, 2)
        moved = distance(optimum(first, tau), optimum(second, tau))
        assert moved <= distance_bound(first, second, tau) + RTOL


def bandit(reward, tokens):
    """A record of one-token responses to one prompt."""
    number = len(tokens)
    return Rollouts.of_responses(
        tokens[:, None], np.ones((number, 1), bool), reward, np.zeros(number, np.int32)
    )


@pytest.mark.parametrize(
    ("advantage", "wanted"),
    [
        (group_normalized(1e-6), [1.497006, -0.499002, -0.499002, -0.499002]),
        (group_centered(), [0.00075, -0.00025, -0.00025, -0.00025]),
    ],
    ids=["normalized", "centred"],
)
def test_group_normalization_makes_the_cliff_steeper(advantage, wanted):
    own = recipe_of(advantage, reinforce()).objective
    batch = bandit(np.array([1.001, 1, 1, 1]), np.zeros(4, np.int32))
    stats = TokenStats(logp=jnp.zeros((4, 1)))
    found = own.signals(stats, batch, own.init(golden.spec(batch)), jax.random.key(0))
    assert_allclose(found.advantage[:, 0], wanted, atol=DIGITS)


@functools.partial(jax.jit, static_argnums=0)
def final_policy(tau, reward, seed):
    """Trains three answers by the library's objective on 32 samples a step, 300 steps."""
    terms = [entropy_bonus(tau)] if tau else []
    own = recipe_of(group_centered(), reinforce(), regularizers=terms).objective

    def loss(logits, tokens, key):
        logp = jax.nn.log_softmax(logits)
        entropy = -jnp.sum(jnp.exp(logp) * logp)
        stats = TokenStats(
            logp=logp[tokens][:, None], entropy=jnp.broadcast_to(entropy, (len(tokens), 1))
        )
        batch = bandit(reward[tokens], tokens)
        return own.loss(stats, batch, own.init(golden.spec(batch)), key)[0]

    def step(logits, number):
        key = jax.random.fold_in(jax.random.key(seed), number)
        tokens = jax.random.categorical(key, logits, shape=(32,)).astype(jnp.int32)
        return logits - 2.0 * jax.grad(loss)(logits, tokens, key), None

    logits, _ = jax.lax.scan(step, jnp.zeros(3), jnp.arange(300))
    return jax.nn.softmax(logits)


@pytest.mark.thorough
@pytest.mark.parametrize(("tau", "low", "high"), [(0.0, 1.8, 2.0), (1.0, 0.0, 0.5)])
def test_a_trained_bandit_falls_off_the_cliff_unless_entropy_holds_it(tau, low, high):
    """Optima are 2 and 0.1 apart; the rest is sampling noise at this step size."""
    for seed in range(3):
        up, down = (final_policy(tau, VALUES + d * FIRST, seed) for d in (0.1, -0.1))
        assert low <= distance(up, down) <= high
