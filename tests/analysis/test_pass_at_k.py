"""pass@k against enumeration and exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.boundary.pass_at_k import (
    all_at_k,
    best_of_k,
    majority_at_k,
    mean_pass_at_k,
    pass_at_k,
    pass_at_k_curve,
    pass_at_k_variance,
    plug_in_pass_at_k,
)

RTOL = 1e-12  # float64, products of at most a few factors
ATOL = 1e-13  # differences of numbers near 1
RIGHT, UNPARSED = 0, 3


@pytest.mark.parametrize("n, c", [(1, 0), (1, 1), (5, 0), (5, 2), (7, 6), (7, 7)])
def test_pass_and_all_are_the_share_of_subsets(n, c):
    outcomes = [1] * c + [0] * (n - c)
    for k in range(1, n + 1):
        subsets = list(itertools.combinations(outcomes, k))
        assert_allclose(pass_at_k(n, c, k), np.mean([any(s) for s in subsets]), atol=ATOL)
        assert_allclose(all_at_k(n, c, k), np.mean([all(s) for s in subsets]), atol=ATOL)


def _plurality_credit(votes):
    counts = {a: votes.count(a) for a in set(votes) - {UNPARSED}}
    winners = [a for a, count in counts.items() if count == max(counts.values())]
    return (RIGHT in winners) / len(winners) if winners else 0.0


@pytest.mark.parametrize(
    "answers",
    [
        [0, 0, 1, 1, 2, 3],
        [0, 1, 2, 4, 5, 6],
        [3, 3, 3],
        [0, 3, 3, 1, 1],
        [0] * 4,
        [1, 1, 0, 0, 2, 2, 3],
    ],
)
def test_majority_is_the_mean_over_subsets(answers):
    for k in range(1, len(answers) + 1):
        brute = np.mean([_plurality_credit(s) for s in itertools.combinations(answers, k)])
        assert_allclose(majority_at_k(answers, RIGHT, k, UNPARSED), brute, rtol=RTOL, atol=ATOL)


def test_an_answer_that_is_none_does_not_vote_even_if_it_is_called_right():
    assert majority_at_k(["12", None, None], "12", 3) == 1.0
    assert majority_at_k([None, None, "7"], None, 2) == 0.0


def test_majority_of_a_thousand_samples_is_finite_and_near_certain():
    answers = [0] * 600 + [1] * 400
    assert_allclose(majority_at_k(answers, RIGHT, 1), 0.6, rtol=1e-10)  # sums of 1e3 large terms
    assert majority_at_k(answers, RIGHT, 101) > 0.97


def test_best_of_k_is_the_mean_over_subsets_and_tie_breaks():
    correct, scores = [1, 0, 1, 0, 0], [0.3, 0.9, 0.5, 0.5, 0.1]
    for k in range(1, 6):
        credits = []
        for subset in itertools.combinations(range(5), k):
            best = max(scores[i] for i in subset)
            credits.append(np.mean([correct[i] for i in subset if scores[i] == best]))
        assert_allclose(best_of_k(correct, scores, k), np.mean(credits), rtol=RTOL)


def test_best_of_k_with_the_outcome_as_score_is_pass_at_k():
    correct = np.array([1, 0, 0, 1, 0, 0, 0])
    for k in range(1, 8):
        assert_allclose(best_of_k(correct, correct, k), pass_at_k(7, 2, k), rtol=RTOL)


@pytest.mark.parametrize(
    "n, c, k", [(1024, 1, 1), (1024, 1, 512), (1024, 37, 1024), (1024, 3, 900)]
)
def test_a_thousand_samples_lose_no_digits(n, c, k):
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    assert_allclose(pass_at_k(n, c, k), float(exact), rtol=RTOL)
    assert_allclose(all_at_k(n, n - c, k), float(1 - exact), rtol=1e-11, atol=1e-300)


def test_the_estimator_is_unbiased_and_the_plug_in_is_not():
    n, k, p = 12, 6, 0.07
    y = np.arange(n + 1)
    chance = np.array([math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in y])
    truth = 1 - (1 - p) ** k
    assert_allclose(chance @ pass_at_k(n, y, k), truth, rtol=RTOL)
    assert chance @ plug_in_pass_at_k(n, y, k) < truth - 0.02


def test_variance_is_zero_where_every_sample_agrees():
    assert_allclose(pass_at_k_variance([8, 16], [0, 16], 4), [0, 0], atol=ATOL)


def test_n_stands_beside_k_in_what_is_printed():
    result = mean_pass_at_k(64, [0, 3, 64], 8)
    assert "pass@8" in str(result) and "n = 64" in str(result) and "3 problems" in str(result)


def test_one_problem_has_no_error_bar():
    assert math.isnan(mean_pass_at_k(4, [1], 2).standard_error)


def test_the_default_curve_ends_at_or_below_n():
    assert [p.k for p in pass_at_k_curve(33, [1, 2])] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        ((4, 1, 5), "k must be in \\[1, num_samples\\], got k = 5 with num_samples = 4"),
        ((4, 1, 0), "k must be in"),
        ((4, 5, 1), "num_correct must be in \\[0, num_samples\\], got 5 of 4"),
        ((4, 0.5, 1), "num_correct must be whole numbers, got 0.5"),
    ],
)
def test_wrong_counts_are_refused_by_name(arguments, wanted):
    for function in (pass_at_k, all_at_k, pass_at_k_variance):
        with pytest.raises(ValueError, match=f"{function.__name__}: {wanted}"):
            function(*arguments)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"best_of_k: correct and scores .* got \(2,\) and \(3,\)"):
        best_of_k([1, 0], [1, 2, 3], 1)
    with pytest.raises(ValueError, match="majority_at_k: answers must be 1 to 1000, got 1001"):
        majority_at_k([0] * 1001, 0, 1)


def test_counts_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="num_samples must be whole numbers, got inf"):
        pass_at_k(np.inf, 1, 1)
    for nothing in ([], [np.nan]):
        with pytest.raises(ValueError, match="pass_at_k_curve: num_samples must be whole numbers"):
            pass_at_k_curve(nothing, nothing)
    with pytest.raises(ValueError, match=r"best_of_k: correct must be in \[0, 1\], got"):
        best_of_k([0, 5], [1, 2], 1)
