"""Two policies on the same problems: exact tests, crossings, support and its noise floor."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.boundary.base_vs_rl import (
    base_vs_rl,
    crossing_interval,
    crossing_k,
    solve_rates,
)
from rlvr_jax.analysis.boundary.math_beyond import (
    consolidated,
    expansion,
    reachable,
    unsolved,
    upper_bound,
)
from rlvr_jax.analysis.boundary.model_task_alignment import alignment, gains_by_alignment
from rlvr_jax.analysis.boundary.paired_problems import (
    changed_problems,
    holm,
    paired_gap,
    paired_table,
    sign_test,
)
from rlvr_jax.analysis.boundary.pass_at_k import pass_at_k
from rlvr_jax.analysis.boundary.support_shrinkage import (
    expected_support,
    noise_floor,
    support,
    unseen_mass,
)

RTOL = 1e-12  # float64, sums of some tens of terms
DIGITS = 1e-6  # of the worked examples


def test_the_sign_test_is_the_binomial_tail_on_both_sides():
    for ups, downs in [(0, 0), (5, 0), (3, 2), (7, 1)]:
        n = ups + downs
        tail = sum(math.comb(n, i) for i in range(min(ups, downs) + 1)) / 2**n
        assert_allclose(sign_test(ups, downs), min(1.0, 2 * tail), rtol=RTOL)


def test_a_paired_table_counts_every_problem_once():
    table = paired_table([1, 0, 0, 1, 0], [1, 1, 1, 0, 0])
    assert table[:4] == (1, 2, 1, 1) and table.p_value == 1.0
    with pytest.raises(ValueError, match=r"one shape \[problems\], got \(1,\) and \(2,\)"):
        paired_table([1], [1, 0])


def test_fishers_test_sums_the_tables_that_are_no_likelier():
    c1, n1, c2, n2 = 1, 6, 5, 7
    chances = {
        x: math.comb(n1, x) * math.comb(n2, c1 + c2 - x) / math.comb(n1 + n2, c1 + c2)
        for x in range(max(0, c1 + c2 - n2), min(n1, c1 + c2) + 1)
    }
    wanted = sum(p for p in chances.values() if p <= chances[c1] * (1 + 1e-9))
    assert_allclose(changed_problems([c1, 3], [c2, 3], n1, n2)[0], wanted, rtol=RTOL)
    assert_allclose(changed_problems([0, 6], [0, 6], 6, 6), [1, 1])
    with pytest.raises(ValueError, match=r"first_correct must be in \[0, first_samples\]"):
        changed_problems([7], [1], 6, 6)


def test_holm_steps_down_and_keeps_the_order():
    assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert_allclose(holm([0.9, 0.8]), [1.0, 1.0])


def test_the_paired_gap_is_the_difference_of_the_means():
    first, second = [0, 2, 4, 1], [1, 2, 4, 4]
    gap = paired_gap(first, second, samples=4, k=2)
    wanted = np.mean(pass_at_k(4, second, 2) - pass_at_k(4, first, 2))
    assert gap.mean == pytest.approx(wanted) and gap.low <= wanted <= gap.high
    assert paired_gap(first, first, 4, 2).high == 0


def test_curves_cross_where_the_base_reaches_rl_again():
    assert crossing_k([0.1, 0.4, 0.6], [0.3, 0.4, 0.5]) == 2
    assert crossing_k([0.1, 0.2, 0.3], [0.3, 0.4, 0.5]) == 0
    assert crossing_k([0.3, 0.9], [0.3, 0.4]) == 0  # RL does not lead at k = 1


def test_sharpening_crosses_in_every_draw_and_widening_in_none():
    base, sharp = np.full(40, 2), np.repeat([8, 0], 20)
    sharpened = crossing_interval(base, sharp, 8, rounds=50)
    assert sharpened.fraction == 1 and sharpened.low <= sharpened.k <= sharpened.high
    widened = crossing_interval(np.repeat([2, 0], 20), np.full(40, 6), 8, rounds=50)
    assert widened.k == 0 and widened.fraction == 0 and np.isnan(widened.low)


def test_solve_rates_on_an_edge_belong_to_the_upper_bin():
    assert solve_rates([0, 3, 5, 4, 1], 5, 5).tolist() == [1, 1, 0, 1, 2]
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        base_vs_rl([1], [1], 2, bins=0)


def test_expected_support_is_the_mean_over_all_subsets_of_either_policy():
    base, trained, n, k = [1, 0, 3], [0, 2, 4], 4, 2
    subsets = list(itertools.combinations(range(n), k))
    total = np.zeros(4)
    for one, two in itertools.product(subsets, subsets):
        # sample i of a problem with c right ones is right where i < c
        solved = [
            [any(i < c for i in chosen) for c in counts]
            for chosen, counts in ((one, base), (two, trained))
        ]
        total += support(*solved)
    assert_allclose(expected_support(base, trained, n, k), total / len(subsets) ** 2, rtol=RTOL)
    assert expected_support(base, trained, n, n) == support([1, 0, 1], [0, 1, 1])


def test_the_noise_floor_is_the_mean_over_all_disjoint_draws():
    correct, n, k = [0, 1, 2, 5], 5, 2
    pairs = [
        (one, two)
        for one in itertools.combinations(range(n), k)
        for two in itertools.combinations(sorted(set(range(n)) - set(one)), k)
    ]
    total = sum(
        np.array(support(*([any(i < c for i in draw) for c in correct] for draw in pair)))
        for pair in pairs
    )
    floor = noise_floor(correct, n, k)
    assert_allclose(floor, total / len(pairs), rtol=RTOL)
    assert floor.net_change == 0 and 0 < floor.discovery < 1
    with pytest.raises(ValueError, match="at most half of the 5 samples, got 3: 6 samples"):
        noise_floor(correct, n, 3)


def test_the_floor_of_sure_problems_is_nothing():
    assert noise_floor([0, 8], 8, 4) == (1, 0, 0, 1)


def test_support_measures_of_nothing_are_zero():
    empty = support([0, 0], [0, 0])
    assert empty == (0, 0, 0, 2)
    assert (empty.retention, empty.discovery, empty.score, empty.net_change) == (0, 0, 0, 0)
    with pytest.raises(ValueError, match=r"one shape, got \(1,\) and \(2,\)"):
        support([1], [1, 0])


def test_the_published_counts_give_the_published_rates():
    """ProRL-1.5B-v2 against its base, as the paper has them: .93 and .02."""
    found = support(*(np.repeat(kinds, (2388, 48, 175)) for kinds in ([1, 0, 1], [1, 1, 0])))
    assert round(found.retention, 2) == 0.93 and round(found.discovery, 2) == 0.02
    assert_allclose(unseen_mass(8192), 3.66e-4, rtol=1e-3)


BASE, TRAINED, AGAIN = [1, 0, 0, 0, 1, 0], [1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 1, 0]


def test_expansion_and_its_floor_on_the_worked_example():
    found = expansion(BASE, TRAINED, AGAIN)
    assert found.counts == (1, 2, 1, 2)
    assert (found.expansion_rate, found.noise_floor, found.reached) == (0.5, 0.25, 0.5)
    assert_allclose(upper_bound(256), 0.011634, atol=DIGITS)


def test_problems_without_a_right_sample_make_up_the_split():
    correct = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    assert reachable(correct).tolist() == [True, False, True]
    assert unsolved(correct, 2).tolist() == [0, 1] and unsolved(correct, 3).tolist() == [1]
    assert consolidated([1, 1, 0], [0.5, 0.4, 1.0]) == 1
    with pytest.raises(ValueError, match="correct must have 4 samples, got 3"):
        unsolved(correct, 4)


def test_nothing_to_expand_gives_zero():
    found = expansion([1, 1], [1, 0], [1, 1])
    assert found.expansion_rate == 0 and found.noise_floor == 0


def test_alignment_and_gains_on_the_worked_example():
    reached = [0.1, 0.4, 0.7, 0.9]
    kinds = [alignment(value) for value in reached]
    assert kinds == ["unaligned", "undecided", "aligned", "aligned"]
    found = gains_by_alignment(reached, {"random": [0, 0.02, 0.05, 0.10], "none": [1, 1, 1, 1]})
    assert_allclose(found["random"].correlation, 0.958002, atol=DIGITS)
    assert_allclose(found["random"].aligned, 0.075)
    assert found["random"].unaligned == 0 and found["none"].correlation is None
    few = gains_by_alignment([0.5, 0.9], {"random": [0, 1]})["random"]
    assert few.correlation is None and few.unaligned is None
    with pytest.raises(ValueError, match="gains of random must be 2, one per cell, got 1"):
        gains_by_alignment([0.1, 0.9], {"random": [0]})
