"""Stages of a run, changes of entropy by outcome, classes of tokens: worked by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.entropy.stages import (
    OutcomeEntropy,
    change_by_outcome,
    entropy_and_fraction,
    outcome_entropy,
    stages,
)
from rlvr_jax.analysis.entropy.token_classes import mean_by_class, token_class

RTOL = 1e-12  # float64, a few operations
ATOL = 1e-12


def test_a_rise_and_a_plateau_are_parted_where_they_meet():
    steps = np.arange(1, 13)
    found = stages(10 * steps, np.minimum(steps, 4) / 8)
    # 1/8, 2/8, 3/8, then 4/8 nine times: the line ends at the fourth step
    assert found.end == 40
    assert_allclose(found.rise, 3 / 8, rtol=RTOL)
    assert found.p_value < 0.01


def test_a_rise_that_goes_on_ends_with_the_run():
    found = stages(np.arange(10), np.arange(10) / 9)
    assert found.end == 9
    assert_allclose(found.rise, 1, rtol=RTOL)


@pytest.mark.parametrize(
    "reward",
    [
        np.full(20, 0.3),
        np.zeros(20),
        -np.arange(20.0),
        np.random.default_rng(0).normal(size=20),
        [0, 1, 1],  # one of three orders in three fits as well
    ],
)
def test_a_reward_that_stands_still_falls_or_jumps_about_has_no_stages(reward):
    assert stages(np.arange(len(reward)), reward).end is None


def test_few_orders_of_the_steps_say_how_sure_a_rise_is():
    # 0 first is as good in a third of the orders; 999 shuffles
    assert stages([1, 2, 3], [0, 1, 1]).p_value == pytest.approx(1 / 3, abs=0.05)
    assert stages([1, 2, 3], [1, 0, 0]) == (None, 0.0, 1.0)


@pytest.mark.parametrize(
    ("steps", "reward", "sentence"),
    [
        ([1, 2], [0, 1], "with N ≥ 3"),
        ([1, 2, 3], [0, 1], "must have one shape"),
        ([1, 2, 3], [0, np.nan, 1], "must be finite"),
    ],
)
def test_what_has_no_stages_to_look_for_is_refused(steps, reward, sentence):
    with pytest.raises(ValueError, match=sentence):
        stages(steps, reward)


def test_entropy_is_parted_by_outcome_without_padding():
    entropy = np.array([[0.2, 0.4, 9.0], [1.0, 9.0, 9.0], [0.6, 9.0, 9.0]])
    found = outcome_entropy(entropy, entropy < 9, [True, False, True])
    assert_allclose(found, (1 / 4, 1.0, 0.4), rtol=RTOL)
    assert outcome_entropy([[0.5]], [[True]], [False]) == (1.0, 0.5, None)
    with pytest.raises(ValueError, match="must have a token"):
        outcome_entropy([[0.5]], [[False]], [False])


def test_the_parts_of_a_change_add_up_to_it():
    before, after = OutcomeEntropy(0.8, 0.5, 0.2), OutcomeEntropy(0.4, 0.1, 0.2)
    found = change_by_outcome(before, after)
    # .6 · -.4, .4 · 0, -.4 · (.3 - .2); .44 → .16
    assert_allclose(found, (-0.24, 0, -0.04), rtol=RTOL, atol=ATOL)
    assert_allclose(found.change, -0.28, rtol=RTOL)


def test_a_kind_that_came_or_went_moves_shares_alone():
    found = change_by_outcome(OutcomeEntropy(1.0, 0.5, None), OutcomeEntropy(0.5, 0.3, 0.1))
    # wrong: .75 · -.2; right, new: none; shares: -.5 · (.4 - .1); .5 → .2
    assert_allclose(found, (-0.15, 0, -0.15), rtol=RTOL, atol=ATOL)
    nobody_right = OutcomeEntropy(1.0, 0.5, None), OutcomeEntropy(1.0, 0.3, None)
    assert_allclose(change_by_outcome(*nobody_right), (-0.2, 0, 0), rtol=RTOL, atol=ATOL)


def test_the_share_of_wrong_tokens_is_read_from_three_curves():
    incorrect, correct = np.array([0.5, 0.4, 0.3]), np.array([0.1, 0.2, 0.3])
    found = entropy_and_fraction(0.75 * incorrect + 0.25 * correct, incorrect, correct)
    assert_allclose(found, (0.75, 0.4, 0.2), rtol=RTOL)
    assert entropy_and_fraction([0.2], [0.2], [0.2]) == (0.5, 0.2, 0.2)
    assert (
        entropy_and_fraction([0.9], [0.4], [0.2]).incorrect_fraction == 1
    )  # a fraction, whatever was rounded


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("12", "formal"),
        ("Ġ=", "formal"),
        ("▁3.5", "formal"),
        (" 1,000", "formal"),
        ("(", "formal"),
        ("\\frac", "formal"),
        ("≤", "formal"),
        (" Therefore,", "logical"),
        ("Because", "logical"),
        ("Wait", "metacognitive"),
        ("Ġcheck", "metacognitive"),
        ("there", "semantic"),
        ("x2", "semantic"),
        (".", "semantic"),
        ("", "semantic"),
        ("\n", "semantic"),
    ],
)
def test_a_token_has_the_class_of_its_text(text, kind):
    assert token_class(text) == kind


def test_classes_have_means_and_shares_and_may_be_empty():
    found = mean_by_class(["1", "so", "1", "cat"], [0.2, 0.5, 0.4, 0.9])
    assert [(each.name, each.number) for each in found] == [
        ("formal", 2),
        ("logical", 1),
        ("metacognitive", 0),
        ("semantic", 1),
    ]
    assert_allclose([each.mean for each in found], [0.3, 0.5, 0, 0.9], rtol=RTOL)
    assert_allclose([each.fraction for each in found], [0.3, 0.25, 0, 0.45], rtol=RTOL)
    assert all(each.fraction == each.number == 0 for each in mean_by_class([], []))
    with pytest.raises(ValueError, match=r"must have shape \(1,\), got \(2,\)"):
        mean_by_class(["1"], [1, 2])
