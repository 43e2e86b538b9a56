"""Diversity, calibration, consistency, formats, closed books: examples, limits, messages."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.arrays import binned_mean
from rlvr_jax.analysis.texts.calibration import calibration, votes
from rlvr_jax.analysis.texts.diversity_metrics import (
    answer_diversity,
    bigrams,
    cosine_similarity,
    different_beginnings,
    distinct,
    jaccard_distance,
    mean_distance,
    self_bleu,
    vendi,
)
from rlvr_jax.analysis.texts.echo_chamber import format_fractions, format_shift
from rlvr_jax.analysis.texts.reward_consistency import consistency, false_accepts

RTOL = 1e-12  # float64, sums of a few terms


def test_equal_texts_have_no_diversity():
    texts = [[1, 2, 3]] * 4
    assert distinct(texts, 2) == 2 / 8 and self_bleu(texts) == 1
    assert jaccard_distance([*map(bigrams, texts)]) == 0 and different_beginnings(texts) == 1
    assert_allclose(vendi(cosine_similarity([[1.0, 2.0]] * 4)), 1, rtol=RTOL)


def test_texts_without_a_common_word_have_all_of_it():
    texts = [[1, 2, 3], [4, 5, 6]]
    assert distinct(texts, 1) == 1 and self_bleu(texts) == 0
    assert jaccard_distance([*map(bigrams, texts)]) == 1
    for q in (0.5, 1, 2):
        assert_allclose(vendi(np.eye(5), q), 5, rtol=RTOL)


def test_orders_of_the_vendi_score_approach_shannons():
    similarity = cosine_similarity(np.random.default_rng(0).normal(size=(6, 4)))
    # |q - 1| = 1e-6 and a third of it times a variance of order 1
    assert_allclose(vendi(similarity, 1 + 1e-6), vendi(similarity), rtol=1e-5)


def test_self_bleu_counts_clipped_grams_and_brevity():
    # against [a a b]: unigrams 1 of 2 (clipped), one bigram + 1 smoothing, brevity exp(1 - 3/2)
    short = math.exp(1 - 3 / 2) * math.sqrt(1 / 2 * 1 / 2)
    # against [a c]: unigrams 1 of 3, bigrams 0 + 1 of 2 + 1, trigrams 0 + 1 of 1 + 1
    long = (1 / 3 * 1 / 3 * 1 / 2) ** (1 / 3)
    assert_allclose(self_bleu(["ac", "aab"]), (short + long) / 2, rtol=RTOL)


def test_single_and_empty_texts_are_no_error():
    assert self_bleu([[1]]) == 0 and mean_distance([[1.0]]) == 0 and jaccard_distance([{1}]) == 0
    assert self_bleu([[], [1]]) == 0 and distinct([[]], 1) == 0 and jaccard_distance([[], []]) == 0
    assert answer_diversity([None, None]) == (0, 0, 0)
    with pytest.raises(ValueError, match="vendi: similarity must have 1 on its diagonal"):
        vendi([[2.0]])
    with pytest.raises(ValueError, match="vendi: q must be above 0, got 0"):
        vendi([[1.0]], 0)


def test_a_confidence_that_is_the_outcome_is_calibrated():
    found = calibration([1, 0, 1, 0], [1, 0, 1, 0], bins=5)
    assert (found.ece, found.mce, found.brier, found.auroc) == (0, 0, 0, 1)
    assert found.bin_count.tolist() == [2, 0, 0, 0, 2] and found.overconfidence == 0


def test_auroc_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(0)
    confidence, outcome = rng.integers(0, 5, 30) / 5, rng.integers(0, 2, 30)
    correct, incorrect = confidence[outcome == 1], confidence[outcome == 0]
    pairs = (correct[:, None] > incorrect) + 0.5 * (correct[:, None] == incorrect)
    assert_allclose(calibration(confidence, outcome).auroc, pairs.mean(), rtol=RTOL)
    assert calibration([0.3, 0.4], [1, 1]).auroc == 0.5


def test_votes_sit_in_their_bin_by_whole_numbers():
    cast = votes([7, 7, 7, 1, 2], [0, 0, 0, 0, 0])
    assert cast.count.tolist() == [3, 3, 3, 1, 1] and cast.bins(5).tolist() == [3, 3, 3, 1, 1]
    assert votes([1, 1], [0, 1]).confidence.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("confidence", "outcome", "sentence"),
    [
        ([], [], r"one shape \[B\] with B ≥ 1"),
        ([1.5], [1], r"confidence must be in \[0, 1\]"),
        ([0.5], [0.5], "outcome must be 0 or 1"),
    ],
)
def test_what_is_no_confidence_is_refused(confidence, outcome, sentence):
    with pytest.raises(ValueError, match=sentence):
        calibration(confidence, outcome)


def test_consistency_on_the_worked_example():
    rewards = [[[0.9, 0.2], [0.1, 0.8]], [[0.6, 0.5], [0.7, 0.8]], [[0.4, 0.4], [0.3, 0.9]]]
    assert_allclose(consistency(rewards), [2 / 3, 2 / 3, 1 / 3])
    assert consistency(rewards, [True, False, False]) == (1, 1, 1)
    accepted = [[[1, 0], [0, 1]], [[1, 1], [0, 1]]]
    assert false_accepts(accepted) == 0.25 and false_accepts(accepted, [True, False]) == 0
    with pytest.raises(ValueError, match=r"must be \[pairs, 2, 2\], got \(2, 2\)"):
        consistency(rewards[0])


def test_a_format_that_takes_over_explains_its_gain():
    formats = np.array([0, 0, 1, 1])
    accuracy = binned_mean([1, 0, 1, 1], formats, 3)
    assert accuracy.tolist() == [0.5, 1, 0]
    shift = format_shift([0.5, 0.5, 0], [0, 1, 0], accuracy, [0.9, 0.1, 0])
    assert shift.dominant == 1 and not shift.best_format_won and not shift.same_winner
    assert shift.between_formats == 0.25 and shift.total_variation == 0.5
    same = format_shift(
        format_fractions(formats, 3), format_fractions(formats, 3), accuracy, accuracy
    )
    assert same.js == 0 and same.total_variation == 0 and same.between_formats == 0
    with pytest.raises(ValueError, match="format_shift: after must sum to 1"):
        format_shift([1, 0], [1, 1], [0, 0], [0, 0])
