"""Rewards of answers, citations, calls and rubrics: worked examples and edges."""

import jax
import numpy as np
import pytest
from everyday import everyday
from golden_vectors import array
from reward_rows import rollouts

from rlvr_jax.experience import (
    agreement,
    by_rubric,
    choose,
    lower_bound,
    own_score,
    vote_count,
    vote_sum,
)
from rlvr_jax.methods.judges.rubric_rewards import anchored
from rlvr_jax.methods.rewards.carr_cgrpo import with_evidence
from rlvr_jax.methods.rewards.length_rewards import length_cosine, short_of_group
from rlvr_jax.methods.rewards.longrlvr import grounded
from rlvr_jax.methods.rewards.medgrpo import by_start_quartiles
from rlvr_jax.methods.rewards.rlsp import decoupled_exploration
from rlvr_jax.methods.rewards.salu import confident_abstention
from rlvr_jax.types import Criterion

ROUNDED = 1e-6  # the examples have six digits


def apart(batch, row):
    """The row has no verdict."""
    mask, group = np.asarray(batch.mask).copy(), np.asarray(batch.group).copy()
    mask[row], group[row] = False, -1 - row
    return batch.replace(mask=array(mask, bool), group=array(group, np.int32))


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", everyday([np.float32, np.float64], np.float32))
@pytest.mark.parametrize(
    "reward",
    [
        agreement(),
        agreement(vote=True),
        length_cosine(4),
        short_of_group(),
        with_evidence(0),
        by_rubric([Criterion("a"), Criterion("b", kind="veto")]),
        confident_abstention(),
        decoupled_exploration(1.0),
    ],
    ids=lambda reward: getattr(reward, "label", "cosine").partition("(")[0],
)
def test_rewards_keep_the_dtype_of_the_outcome_under_jit(reward, dtype):
    batch = rollouts(np.full((4, 3), 0.5), dtype=dtype, answer=array([0, 0, 1, -4], np.int32))
    found = jax.jit(reward)(batch)
    assert found.dtype == dtype and np.isfinite(found).all()
    np.testing.assert_array_equal(found, reward(batch))


def test_who_has_no_answer_has_no_vote_and_who_has_no_verdict_is_not_counted():
    batch = rollouts(answer=array([-1, -2, 5, 7], np.int32))
    np.testing.assert_array_equal(agreement(vote=True)(batch), [0, 0, 1, 0])
    np.testing.assert_array_equal(agreement(missing=-0.5)(batch), [-0.5, -0.5, 0.25, 0.25])
    np.testing.assert_array_equal(agreement(parted=0.0)(batch), 0)
    same = batch.replace(answer=array([5, 5, 5, 7], np.int32))
    np.testing.assert_array_equal(agreement()(apart(same, 0))[1:], np.array([2, 2, 1]) / 3)


def test_citations_and_evidence_that_nobody_could_judge_are_no_reward():
    known = [[0.5, 1.0, 1.0], [np.nan, np.nan, 1.0], [0.0, 0.0, 1.0], [np.nan, np.nan, 1.0]]
    batch = rollouts(known)
    for reward in (grounded(0, 1), grounded(0, 1, 2)):
        found, _, told = reward.apply(batch, (), None)
        np.testing.assert_array_equal(np.isnan(found), [False, True, False, True])
        # Of the two that are known: 5 · 0.5 / (4 · 0.5 + 1) and 0.
        assert told["reward/f_score"] == pytest.approx(2.5 / 3 / 2)
    # A wrong response earns nothing, whatever there is for it.
    found = np.asarray(with_evidence(0)(batch))
    np.testing.assert_array_equal(np.isnan(found), [False, True, False, False])
    np.testing.assert_array_equal(found[2:], 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: by_rubric([]), r"rubric must have criteria of different names, got \[\]"),
        (lambda: by_rubric([Criterion("a"), Criterion("a")]), r"got \['a', 'a'\]"),
        (lambda: Criterion("a", weight=0), "Criterion: weight must be positive, got 0"),
        (
            lambda: Criterion("a", kind="hard"),
            "one of 'plain', 'factual', 'veto', got",
        ),
        (lambda: anchored(synergy=-1), "anchored: synergy must be above -1, got -1"),
        (lambda: decoupled_exploration(-1.0), "scale must be at least 0, got -1"),
        (lambda: by_start_quartiles(0, cells=0), "cells must be at least 1, got 0"),
    ],
)
def test_what_makes_no_reward_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_choices_of_the_worked_example():
    """Answer A of three solutions with 4 of 6 verdicts right, B of one with 2 of 2."""
    answer = array([0, 0, 0, 1], np.int32)
    score = array([1.0, 0.5, 0.5, 1.0], float)
    group, ids = array(np.zeros(4), np.int32), array(np.arange(4), np.int32)

    def chosen(rule, **more):
        return np.flatnonzero(choose(score, answer, group, ids, rule, **more)).tolist()

    assert chosen(lower_bound(0.1, verdicts=2)) == [3]
    assert chosen(lower_bound(1.0, verdicts=2)) == [0]
    clusters = answer
    bound = lower_bound(0.1, verdicts=2)(score, clusters, group)
    np.testing.assert_allclose(bound, [0.636960] * 3 + [0.930685], atol=ROUNDED)
    assert chosen(own_score) == [0] and chosen(vote_count) == [0] and chosen(vote_sum) == [0]
    assert chosen(own_score, parsed=array([0, 0, 0, 1], bool)) == [3]
    assert chosen(own_score, parsed=array([0, 0, 0, 0], bool)) == []
