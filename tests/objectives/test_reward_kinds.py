"""Rewards of lengths, answers, citations, calls, rubrics: worked examples and edges."""

import jax
import numpy as np
import pytest
from everyday import everyday
from golden_vectors import array

from rlvr_jax.experience import (
    Moment,
    agreement,
    by_rubric,
    choose,
    counted_calls,
    lower_bound,
    own_score,
    reached_share,
    share_of_rubric,
    vote_count,
    vote_sum,
)
from rlvr_jax.methods.exploration.rep_exploration import (
    leave_one_out_leverage,
    leverage,
    novelty_bonus,
)
from rlvr_jax.methods.judges.rgr_grpo import all_factual_or_share
from rlvr_jax.methods.judges.rubric_rewards import anchored
from rlvr_jax.methods.rewards.carr_cgrpo import with_evidence
from rlvr_jax.methods.rewards.length_rewards import length_cosine, short_of_group
from rlvr_jax.methods.rewards.longrlvr import f_score, grounded
from rlvr_jax.methods.rewards.medgrpo import by_start_quartiles
from rlvr_jax.methods.rewards.rlsp import decoupled_exploration
from rlvr_jax.methods.rewards.salu import confident_abstention
from rlvr_jax.types import Criterion, Rollouts

NOW = Moment(0, jax.random.key(0), np.zeros(4, np.int32))
EXACT = 1e-12  # float64, a few operations
ROUNDED = 1e-6  # the examples have six digits


def rollouts(
    columns=None, outcome=(1.0, 1.0, 0.0, 0.0), length=(1, 2, 3, 4), dtype=np.float64, **more
):
    width = 4
    mask = np.arange(width)[None] < np.array(length)[:, None]
    known = {} if columns is None else {"component_rewards": array(columns, dtype)}
    batch = Rollouts.of_responses(
        tokens=array(np.zeros((4, width)), np.int32),
        mask=array(mask, bool),
        reward=array(outcome, dtype),
        group=array(np.zeros(4), np.int32),
        **known,
    )
    return batch.replace(**more)


def apart(batch, row):
    """The row has no verdict."""
    mask, group = np.asarray(batch.mask).copy(), np.asarray(batch.group).copy()
    mask[row], group[row] = False, -1 - row
    return batch.replace(mask=array(mask, bool), group=array(group, np.int32))


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


def test_a_group_of_equal_lengths_earns_nothing_for_them():
    np.testing.assert_array_equal(short_of_group()(rollouts(length=(2, 2, 2, 2))), 0)
    np.testing.assert_allclose(
        short_of_group()(rollouts(outcome=(1.0, 0, 0, 1.0))), [0.5, 0, -1 / 6, -0.5], atol=EXACT
    )


def test_the_cosine_does_not_rise_again_behind_its_length():
    found = length_cosine(2)(rollouts(outcome=(1.0, 1.0, 1.0, 0.0)))
    np.testing.assert_allclose(found, [0.75, 0.5, 0.5, -0.5], atol=EXACT)


def test_no_citation_and_a_citation_of_all_have_a_score():
    found = f_score(array([0.0, 1.0, 0.04], float), array([0.0, 1.0, 1.0], float), 2.0)
    np.testing.assert_allclose(found, [0, 1, 5 * 0.04 / 1.16], atol=EXACT)


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


@pytest.mark.parametrize("scale", [0.1, 10.0, 1000.0])
def test_leverage_in_float32_is_that_of_exact_arithmetic_whatever_the_scale(scale):
    features = np.random.default_rng(0).normal(size=(12, 64)) * scale
    group, ridge = np.repeat([3, 1], 6), 0.01
    wanted = np.zeros(12)
    for number in (1, 3):
        own = features[group == number]
        own = own - own.mean(axis=0)
        outer = ridge * np.eye(64) + own.T @ own
        wanted[group == number] = np.diagonal(own @ np.linalg.solve(outer, own.T))
    found = leverage(array(features, np.float32), array(group, np.int32), ridge)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)  # sums of 12 in float32
    np.testing.assert_allclose(
        leave_one_out_leverage(found), wanted / (1 - wanted), rtol=1e-4
    )  # 1 - l is a sixth


def test_embeddings_without_length_are_all_alike():
    batch = rollouts().replace(embedding=array(np.zeros((4, 0)), np.float64))
    for others in (False, True):
        np.testing.assert_array_equal(novelty_bonus(0.1, others=others)(batch), batch.outcome)


def test_calls_solve_each_answer_once_and_for_their_own_tool():
    open_ = {"add": ["5", "7"]}
    assert counted_calls(["add"] * 3, ["5", "5", "7"], open_) == (3, 2)
    assert counted_calls(["sub"], ["7"], open_) == (1, 0)


def test_the_rubrics_of_the_worked_example():
    scores = np.tile(np.array([[1, 0.4, 0.5]]), (4, 1))
    rubric = [Criterion("a", 2.0), Criterion("b", kind="veto"), Criterion("c")]
    plain = [Criterion("a", 2.0), Criterion("b"), Criterion("c")]
    for own, combine, wanted in (
        (plain, anchored(), 0.725),
        (rubric, anchored(), 0.0),
        (rubric, share_of_rubric, 0.0),
        (rubric, anchored(veto_below=0.4), 0.725),
        (plain, anchored(saturation=0.5), 0.841980),
        (plain, anchored(synergy=0.25, pair=(0, 2)), 0.68),
        (plain, anchored(power=2.0), 0.525625),
    ):
        found = by_rubric(own, combine)(rollouts(scores))
        np.testing.assert_allclose(found, wanted, atol=ROUNDED)


def test_a_criterion_without_a_score_leaves_the_mean_and_a_row_without_any_has_no_reward():
    points = [[1, np.nan], [np.nan, 4], [np.nan, np.nan], [9, 2]]
    rubric = [Criterion("a", 2.0), Criterion("b", maximum=4)]
    own = by_rubric(rubric)
    found, _, told = own.apply(rollouts(points), (), NOW)
    np.testing.assert_array_equal(found, [1, 1, np.nan, 0.5])
    assert told == {"criterion/a": 1.0, "criterion/b": 0.75}
    factual = [Criterion("a", kind="factual"), Criterion("b", 3.0)]
    found = by_rubric(factual, all_factual_or_share())(
        rollouts([[1, 0], [0.4, 1], [np.nan, 1], [0, 0]])
    )
    np.testing.assert_array_equal(found, [1, 0.75, 1, 0])


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
        (lambda: reached_share([], []), "one verdict for each of the 0 rubrics"),
        (lambda: decoupled_exploration(-1.0), "scale must be at least 0, got -1"),
        (lambda: by_start_quartiles(0, cells=0), "cells must be at least 1, got 0"),
    ],
)
def test_what_makes_no_reward_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_evidence_counts_where_it_is_reached_from_the_answer():
    rubrics = [["E0", "E1"], ["E1", "E2"], ["E3", "E4"], ["E0", "E5"], ["E2", "E6"]]
    names = {f"E{number}": "name" for number in range(6)} | {"E6": None}
    assert reached_share(rubrics, [True, True, True, False, True], names) == 2 / 5
    assert reached_share([["E0"], []], [True, True]) == 1 / 2


def test_the_longest_is_paid_most_where_nobody_is_right_and_a_cut_one_no_more_than_the_shortest():
    batch = rollouts(outcome=(0.0,) * 4, answer=array([0, 1, 2, 3], np.int32))
    found = decoupled_exploration(2.0)(batch)
    np.testing.assert_allclose(found, [-2, -1, -2 / 3, -0.5], atol=EXACT)
    cut = array([False, True, False, True], bool)
    held = batch.replace(truncated=cut, length=array([3, 1, 3, 4], np.int32))
    np.testing.assert_allclose(decoupled_exploration(3.0)(held), [-1, -3, -1, -1], atol=EXACT)
    silent = batch.replace(answer=array([-1, 1, 2, 3], np.int32))
    np.testing.assert_array_equal(decoupled_exploration(0.0)(silent), [-0.5, 0, 0, 0])


def test_quartiles_are_those_of_the_first_batch_in_which_a_cell_occurs():
    own = by_start_quartiles(0, cells=2, slope=3.0, least=0.05)
    state = own.init(9)
    first = rollouts([[0.0], [0.2], [0.4], [0.6]])
    reward, state, told = own.apply(first, state, NOW)
    assert float(reward[0]) < 0.5 < float(reward[3]) and told["reward/median"] == pytest.approx(0.3)
    before = state.quartiles.copy()
    later = rollouts([[0.9], [0.9], [0.9], [0.9]], cell=array([0, 0, 1, 1], np.int32))
    reward, state, _ = own.apply(later, state, NOW)
    np.testing.assert_array_equal(state.quartiles[0], before[0])
    np.testing.assert_allclose(state.quartiles[1], 0.9, rtol=1e-6)  # float32
    assert state.known.all() and float(reward[0]) > 0.9 and float(reward[2]) == pytest.approx(0.5)


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
