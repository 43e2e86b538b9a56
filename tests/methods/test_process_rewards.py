"""Rewards on the way: the worked examples, and what cannot be farmed."""

import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.credit.designing_rewards import clip_and_delta, final_scores
from rlvr_jax.methods.credit.gen_prm_thoughts import nothing_at_the_end, thought_rewards
from rlvr_jax.methods.credit.rlfr import deviation_penalty
from rlvr_jax.objectives import discounted_returns, paid_tokens
from rlvr_jax.types import Rollouts


def rollouts(scores, outcome, width=None):
    """Each score is a step of two tokens; three tokens of no step stand behind them."""
    width = width or 2 * max(map(len, scores)) + 3
    rows = len(scores)
    step = np.full((rows, width), -1)
    reward = np.zeros((rows, width))
    for row, own in enumerate(scores):
        for place, score in enumerate(own):
            step[row, 2 * place : 2 * place + 2] = place
            reward[row, 2 * place + 1] = score
    return Rollouts.of_responses(
        tokens=array(np.zeros((rows, width)), np.int32),
        mask=array(np.ones((rows, width)), bool),
        reward=array(outcome, np.float64),
        group=array(np.zeros(rows), np.int32),
        step=array(step, np.int32),
        process_reward=array(reward, np.float64),
    )


def test_thoughts_of_the_worked_example():
    """Steps right right wrong right in a group of which a quarter is right."""
    steps = [1.0, 1.0, 0.0, 1.0]
    batch = rollouts([steps, steps, [], []], [0.0, 1.0, 0.0, 0.0])
    paid = paid_tokens(batch, batch.mask, thought_rewards(), 1.0, nothing_at_the_end)
    to_go = np.asarray(discounted_returns(paid, batch.mask))
    np.testing.assert_array_equal(to_go[0, [0, 4, 6]], [-0.5, -0.75, 0.25])
    np.testing.assert_array_equal(to_go[1, [0, 4, 6]], [0.5, 0.25, 0.25])


@pytest.mark.slow
def test_splitting_a_thought_gains_nothing_and_repeating_a_good_step_neither():
    batch = rollouts([[1.0, 0.0], [1.0, 1.0, 1.0, 0.0]], [1.0, 1.0], width=12)
    for process in (thought_rewards(), clip_and_delta(0.0)):
        total = np.asarray(process.of(batch, batch.mask)).sum(axis=1)
        assert total[0] == total[1]


@pytest.mark.parametrize(
    ("scores", "differences"),
    [
        ([0.3], [0.0]),
        ([0.3, 0.9], [0.3, 0.0]),
        ([0.3, -0.2, 0.5, 0.9], [0.5, -0.7, 0.5, 0.0]),
    ],
)
def test_the_sum_from_a_step_on_is_its_own_score(scores, differences):
    batch = rollouts([scores], [1.0])
    found = np.asarray(clip_and_delta(clip=False).of(batch, batch.mask))[0]
    np.testing.assert_allclose(found[1 : 2 * len(scores) : 2], differences, atol=1e-15)  # one sum
    assert not found[2 * len(scores) :].any()


def test_a_step_with_a_hole_in_it_ends_at_its_last_token():
    batch = rollouts([[0.5]], [1.0])
    step = np.asarray(batch.records["step"]).copy()
    step[0] = [0, -1, 0, -1, -1]
    reward = array([[0, 9.0, -0.5, 0, 0]], np.float64)
    batch = batch.replace(step=array(step, np.int32), process_reward=reward)
    scores, steps = final_scores(batch, batch.mask)
    assert scores[0, 0] == -0.5 and int(steps.exists.sum()) == 1


def test_scores_are_scaled_and_chosen_within_their_response():
    scores = array([[1.0, 3.0, 2.0, 2.0, 9.0], [5.0, 5.0, 9, 9, 9]], np.float64)
    mask = array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], bool)
    batch = Rollouts.of_responses(
        np.zeros(mask.shape, int), mask, np.ones(2), [0, 1], process_reward=scores
    )
    for most, penalties in ((2, [0, 1, 0.5, 0, 0]), (3, [0, 1, 0.5, 0.5, 0])):
        found = deviation_penalty(0.2, most).of(batch, batch.mask)
        np.testing.assert_array_equal(-found, [penalties, [0] * 5])
