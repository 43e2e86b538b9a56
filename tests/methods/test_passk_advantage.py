"""Advantages for k attempts against the enumeration of all subsets."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, rollouts

from rlvr_jax.methods.exploration.passk_advantage import (
    best_of_n,
    pass_at_k,
    pass_at_k_centered,
    pass_at_k_marginal,
    pass_at_k_weight,
    subset_normalized,
)
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce

ATOL = 1e-14  # float64, products of a few ratios
N = 6


def advantage(estimator, reward, dtype=np.float64):
    """Of one group; the advantage of each rollout."""
    batch = rollouts("b", dtype=dtype).replace(
        reward=array(np.pad(reward, (0, 12 - len(reward))), dtype),
        group=array(np.arange(12).clip(len(reward) - 1) - len(reward) + 1, np.int32),
    )
    own = objective(estimator, surrogate=reinforce(), aggregation=token_mean())
    found, _, _ = own.decide_once(batch, {}, jax.random.key(0))
    return np.asarray(found.records["advantage"])[: len(reward), 0]


def enumerated(reward, k):
    """Mean over the subsets with rollout i of the normalized and of the plain best reward."""
    subsets = list(itertools.combinations(range(N), k))
    best = np.array([max(reward[list(s)]) for s in subsets])
    inside = np.array([[i in s for s in subsets] for i in range(N)])
    normalized = (best - best.mean()) / (best.std() + 1e-6)
    mean = (inside * normalized).sum(1) / inside.sum(1)
    weight = (inside * best).sum(1) / math.comb(N, k)
    rest = [math.comb(N - 1 - int(reward.sum() - r), k) / math.comb(N - 1, k) for r in reward]
    return mean, weight, weight - k / N * (1 - np.array(rest))


@pytest.mark.thorough
@pytest.mark.parametrize("correct", range(N + 1))
@pytest.mark.parametrize("k", [1, 3])
def test_estimators_agree_with_all_subsets(correct, k):
    reward = np.array([1.0] * correct + [0.0] * (N - correct))
    normalized, weight, centered = enumerated(reward, k)
    np.testing.assert_allclose(advantage(subset_normalized(k), reward), normalized, atol=1e-12)
    np.testing.assert_allclose(advantage(pass_at_k_weight(k), reward), weight, atol=ATOL)
    np.testing.assert_allclose(advantage(pass_at_k_centered(k), reward), centered, atol=ATOL)


@pytest.mark.parametrize("correct", [0, 4, 5, 6])
def test_solved_and_hopeless_prompts_are_exactly_0_in_float32(correct):
    reward = np.array([1.0] * correct + [0.0] * (N - correct))
    assert not advantage(subset_normalized(3), reward, np.float32).any()


def test_small_groups_have_advantage_0():
    for estimator in (subset_normalized(4), pass_at_k_weight(4), pass_at_k_marginal(4)):
        assert not advantage(estimator, np.array([1.0, 0.0, 0.0])).any()
    assert not advantage(pass_at_k_centered(3), np.array([1.0, 0.0, 0.0])).any()


def test_only_a_single_best_rollout_is_paid():
    plain = best_of_n(normalize=False)
    np.testing.assert_allclose(advantage(plain, np.array([0.2, 0.9, 0.4])), [0, 0.5, 0], atol=ATOL)
    assert not advantage(plain, np.array([0.9, 0.9, 0.4])).any()


def test_chances_are_exact_at_both_ends():
    n, c = jnp.asarray([8, 8, 8, 2]), jnp.asarray([0, 6, 8, 1])
    np.testing.assert_array_equal(pass_at_k(n, c, 3), [0.0, 1.0, 1.0, 1.0])


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="subset_normalized: k must be at least 1, got 0"):
        subset_normalized(0)
    with pytest.raises(ValueError, match="best_of_n: epsilon must be positive, got 0"):
        best_of_n(epsilon=0)
