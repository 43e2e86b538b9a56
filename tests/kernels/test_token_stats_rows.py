"""token_stats: identities of nucleus, top-k, min-p and the divergences from a second policy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from token_stats_cases import FLOAT32, evaluate, make_case, one_hot_case

XLA = pytest.mark.parametrize("form", ["xla", "xla in tiles"], indirect=True)
# A divergence of δ²: log-probs of size 10 have a spacing of 1e-6, δ is 1e-3.
SMALL_DIVERGENCE = 3e-3


@pytest.mark.thorough
def test_the_nucleus_of_everything_has_the_entropy_and_its_gradient(form):
    arrays, targets, options = make_case((13, 4, 37))
    nucleus, nucleus_gradients = evaluate(
        form, arrays, targets, options | {"top_p": 1.0}, ["nucleus_entropy"]
    )
    whole, gradients = evaluate(form, arrays, targets, options, ["entropy"])
    assert_allclose(nucleus["nucleus_entropy"], whole["entropy"], rtol=FLOAT32)
    for name, value in gradients.items():
        assert_allclose(nucleus_gradients[name], value, atol=FLOAT32 * np.abs(value).max())


def test_equal_probabilities_are_in_a_nucleus_together(form):
    arrays = one_hot_case([[5.0] * 4 + [0.0] * 33])  # four of .24 each
    stats, _ = evaluate(form, arrays, np.zeros(1, int), {"top_p": 0.3}, ["nucleus_entropy"])
    assert_allclose(stats["nucleus_entropy"], np.log(4), rtol=FLOAT32)


def test_a_nucleus_of_one_token_has_no_entropy_and_no_gradient(form):
    arrays = one_hot_case(np.arange(37.0)[None] * 3)
    stats, gradients = evaluate(form, arrays, np.zeros(1, int), {"top_p": 0.5}, ["nucleus_entropy"])
    assert_array_equal(stats["nucleus_entropy"], 0)
    # Log-probs of size 1 from logits of size 100.
    assert_allclose(gradients["unembedding"], 0, atol=FLOAT32)


def test_equal_logits_are_ranked_by_id(form):
    arrays = one_hot_case([np.r_[np.zeros(20), np.full(17, 2.0)]])
    stats, _ = evaluate(form, arrays, np.zeros(1, int), {"top_k": 3}, ["topk_ids", "max_id"])
    assert_array_equal(stats["topk_ids"], [[20, 21, 22]])
    assert_array_equal(stats["max_id"], [20])


def test_a_min_p_of_one_keeps_the_largest_probabilities(form):
    arrays = one_hot_case([np.r_[np.zeros(35), np.full(2, 2.0)]])
    stats, _ = evaluate(form, arrays, np.zeros(1, int), {"min_p": 1.0}, ["min_p_mass"])
    share = 2 * np.exp(2.0) / (35 + 2 * np.exp(2.0))
    assert_allclose(stats["min_p_mass"], [share], rtol=FLOAT32)


@XLA
def test_a_policy_has_no_divergence_from_itself(form):
    arrays, targets, _ = make_case((13, 4, 37))
    options = {"other": (arrays["hidden"], arrays["unembedding"])}
    stats, _ = evaluate(form, arrays, targets, options, ["kl", "reverse_kl", "js"])
    for value in stats.values():
        assert_array_equal(value, 0)


@XLA
def test_a_small_divergence_keeps_its_digits(form):
    random = np.random.default_rng(0)
    logits, step = random.normal(size=(2, 3, 37))
    moved = (logits + 1e-3 * step).astype(np.float32)
    arrays = one_hot_case(logits)
    options = {"other": (arrays["hidden"], moved.T.copy())}
    stats, _ = evaluate(form, arrays, np.zeros(3, int), options, ["kl", "reverse_kl", "js"])
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    change = moved.astype(np.float64) - logits.astype(np.float32)
    variance = (p * change**2).sum(axis=1) - (p * change).sum(axis=1) ** 2
    # To leading order both are half the variance of the change, and JS a quarter of that.
    assert_allclose(stats["kl"], variance / 2, rtol=SMALL_DIVERGENCE)
    assert_allclose(stats["reverse_kl"], variance / 2, rtol=SMALL_DIVERGENCE)
    assert_allclose(stats["js"], variance / 8, rtol=SMALL_DIVERGENCE)


@pytest.mark.thorough
def test_a_nucleus_without_the_crossing_token_has_less_than_top_p(form):
    probability = np.array([0.5, 0.3, 0.15, 0.05])
    arrays = {"hidden": np.log(probability)[None], "unembedding": np.eye(4)}
    for top_p, kept in ((0.9, [0.5, 0.3]), (0.6, [0.5]), (0.4, [])):
        options = {"top_p": top_p, "include_crossing": False}
        stats, gradients = evaluate(form, arrays, np.zeros(1, int), options, ["nucleus_entropy"])
        inside = np.array(kept) / max(sum(kept), 1e-9)
        assert_allclose(stats["nucleus_entropy"], -np.sum(inside * np.log(inside)), atol=FLOAT32)
        moved = np.flatnonzero(np.abs(np.asarray(gradients["hidden"])[0]) > FLOAT32)
        assert_array_equal(moved, np.arange(len(kept)) if len(kept) > 1 else [])
