"""Forking tokens, profiles and token traces: limits, edges and messages."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.entropy.entropy_patterns import (
    branching,
    change_by_percentile,
    entropy_by_outcome,
    entropy_quantiles,
    fork_overlap,
    forks,
    position_profile,
    word_entropies,
)
from rlvr_jax.analysis.entropy.token_trace_report import (
    clip_fraction,
    rank_and_margin,
    token_trace,
    write_traces,
)

RTOL = 1e-12  # float64, a few operations


def test_padding_is_in_no_quantile_and_no_fork():
    entropy = np.array([[0.1, 0.2, 0.3, 9.0], [0.4, 0.5, 9.0, 9.0]])
    mask = entropy < 1
    found = forks(entropy, mask, 0.2)
    assert found.mask.sum() == 1 and found.mask[1, 1] and not (found.mask & ~mask).any()
    assert_allclose(entropy_quantiles(entropy, mask, [0, 1]), [0.1, 0.5])


def test_a_policy_overlaps_with_itself_and_not_with_its_opposite():
    entropy = np.arange(10.0)[None]
    mask = np.ones((1, 10), bool)
    own, other = forks(entropy, mask, 0.3).mask, forks(-entropy, mask, 0.3).mask
    assert fork_overlap(own, own) == (1, 1) and fork_overlap(own, other) == (0, 0)
    assert fork_overlap(~mask, ~mask) == (0, 0)


def test_change_by_percentile_keeps_every_token_in_one_bin():
    base = np.array([[0.0, 0.0, 0.0, 0.5, 1.0, 1.5]])
    mask = np.ones((1, 6), bool)
    change = change_by_percentile(base, base + np.where(base > 0.9, 0.5, 0), mask, bins=3)
    # edges 0, 0 (a third), 0.667, 1.5: the first bin is empty
    assert_allclose(change, [0, 0, 0.5])


def test_the_profile_counts_places_on_the_mask():
    entropy = np.array([[9.0, 1.0, 2.0, 3.0, 4.0], [5.0, 9.0, 9.0, 9.0, 9.0]])
    mask = entropy < 9
    assert_allclose(position_profile(entropy, mask, 2), [(1 + 2 + 5) / 3, 3.5])
    mask[1] = False
    assert entropy_by_outcome(entropy, mask, [True, False]) == (2.5, 0)


def test_branching_holds_the_token_that_crosses():
    logits = np.log([[0.7, 0.2, 0.1], [0.98, 0.01, 0.01]])
    assert branching(logits, 0.75).tolist() == [2, 1]
    assert branching(np.zeros((1, 20)), 0.5).tolist() == [10]


def test_words_that_are_rare_are_left_out():
    rows = word_entropies([["a", "b"], ["a"]], [[1.0, 9.0], [2.0]], fewest=2)
    assert [(row.word, row.number, row.entropy) for row in rows] == [("a", 2, 1.5)]


@pytest.mark.parametrize("fraction", [0, 1])
def test_what_selects_nothing_is_refused(fraction):
    with pytest.raises(ValueError, match=r"forks: fraction must be in \(0, 1\)"):
        forks([[1.0]], [[True]], fraction)
    with pytest.raises(ValueError, match="entropy_quantiles: mask must have the shape"):
        entropy_quantiles([[1.0]], [[False]])


def trace(advantage, ratio, mask=None):
    width = len(ratio)
    return token_trace(
        logp=np.log([ratio]) - 2,
        old_logp=np.full((1, width), -2.0),
        entropy=np.ones((1, width)),
        rank=np.zeros((1, width)),
        margin=np.zeros((1, width)),
        advantage=[[advantage]],
        mask=np.ones((1, width), bool) if mask is None else mask,
    )


def test_clipped_tokens_have_no_gradient_and_the_others_ratio_times_advantage():
    up = trace(2.0, [1.5, 1.1, 0.5])
    assert up.clipped_high.tolist() == [[True, False, False]] and not up.clipped_low.any()
    assert_allclose(up.gradient_weight, [[0, 2.2, 1.0]], rtol=RTOL)
    assert_allclose(up.surrogate, [[2.56, 2.2, 1.0]], rtol=RTOL)
    down = trace(-1.0, [1.5, 1.1, 0.5])
    assert down.clipped_low.tolist() == [[False, False, True]] and not down.clipped_high.any()
    assert clip_fraction(down, [[True, True, True]]) == pytest.approx(1 / 3)


def test_the_mismatch_is_exact_where_policies_agree():
    same = trace(1.0, [1.0, 1.0 + 1e-9])
    # δ² / 2; e^δ - 1 - δ would round to 0 or to 1e-16
    assert same.mismatch_kl[0, 0] == 0 and 0 <= same.mismatch_kl[0, 1] < 1e-17


def test_the_greedy_token_has_rank_zero():
    logits = np.log([[0.5, 0.3, 0.2]] * 2)
    rank, margin = rank_and_margin(logits, [0, 2])
    assert rank.tolist() == [0, 2]
    assert_allclose(margin, [0.2, 0.2], rtol=RTOL)


def test_traces_are_lines_without_padding_and_without_nan(tmp_path):
    mask = np.array([[True, True, False]])
    rows = [{"tokens": ["a", "b"], "reward": float("nan"), "advantage": {"x": float("inf")}}]
    found = trace(1.0, [1.0, 1.5, 7.0], mask)
    path = write_traces(tmp_path / "traces" / "step.jsonl", found, mask, rows, held_out=True)
    (line,) = map(json.loads, path.read_text().splitlines())
    assert line["schema"] == 1 and line["held_out"] and line["reward"] is None
    assert line["advantage"] == {"x": None} and "ref_kl" not in line
    assert line["ratio"] == [1, 1.5] and line["clipped_high"] == [0, 1]
    assert [file.name for file in path.parent.iterdir()] == ["step.jsonl"]
