"""T-PPO: PPO on the tokens of a window, whether their responses are finished or not."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import training_runs
from golden_vectors import array
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.clipping.t_ppo import critic_of_finished, extended_advantage, in_windows
from rlvr_jax.objectives import GIVEN, Context
from rlvr_jax.objectives.advantages.returns import generalized_advantages, token_rewards
from rlvr_jax.runs.step import collect
from rlvr_jax.types import Rollouts, Signals, TokenStats

MASK = array([[1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]], bool)


VALUES = array([[0.1, 0.4, 0.3, 9], [0.5, 9, 0.2, 0.6], [9, 9, 9, 9], [0.7, 9, 9, 9]], float)


REWARD = array([1.0, 1.0, 1.0, 1.0], float)


ROWS = np.arange(4)


FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats


BUDGET, WINDOW = 8, 3


def batch(truncated, reward=REWARD):
    tokens, truncated = np.zeros((4, 4), int), array(truncated, bool)
    group = np.zeros(4, int)
    return Rollouts.of_responses(tokens, MASK, reward, group, values=VALUES, truncated=truncated)


def advantages(rollouts, trace_decay=0.95):
    signals = Signals.neutral(rollouts.mask, float)
    context = Context(TokenStats(), rollouts, None, None)
    return extended_advantage(1.0, trace_decay).apply(signals, context, ())[0].advantage


def test_finished_responses_have_plain_generalized_advantages():
    wanted = generalized_advantages(token_rewards(REWARD, MASK), VALUES, MASK, 1.0, 0.95)
    np.testing.assert_array_equal(advantages(batch(ROWS < 0)), wanted)


def test_the_error_at_the_end_of_a_window_is_0_and_the_reward_is_not_read():
    errors = advantages(batch(ROWS >= 0, REWARD * np.nan), trace_decay=0.0)
    wanted = [[0.3, -0.1, 0, 0], [-0.3, 0, 0.4, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(errors, wanted, rtol=0, atol=1e-15)
    assert errors[0, 2] == errors[1, 3] == errors[3, 0] == 0


def test_without_decay_the_end_of_a_window_compares_with_the_value_before_it():
    found = advantages(batch(ROWS == 1), trace_decay=1.0)
    np.testing.assert_allclose(found[1], [0.1, 0, 0.4, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[0], [0.9, 0.6, 0.7, 0], rtol=0, atol=1e-15)


def test_the_critic_is_fitted_only_to_finished_responses():
    critic, rollouts = critic_of_finished(), batch(ROWS == 1)
    finished = np.asarray(MASK) & (ROWS != 1)[:, None]
    np.testing.assert_array_equal(critic.weigh(rollouts), finished.astype(float))
    np.testing.assert_array_equal(critic.returns(rollouts), finished.astype(float))


def walked(steps=5, fraction=0.4):
    chain = experience(draw=in_windows(fraction))
    return [found for found, _, _ in numpy_actor.walk(chain, steps=steps)]


def test_a_window_is_trained_and_what_stands_before_it_is_given():
    for found in walked():
        rollouts = found.batch.rollouts
        places = np.arange(BUDGET)[None]
        there = places < rollouts.length[:, None]
        given = np.zeros_like(there)
        if "origin" in rollouts.records:
            given = (rollouts.records["origin"] == GIVEN) & there
        assert_array_equal(rollouts.mask, there & ~given)
        assert np.all(rollouts.mask.sum(axis=1) <= WINDOW)
        assert np.all(given.sum(axis=1) % WINDOW == 0)


def test_what_goes_on_begins_with_what_was_written():
    steps, carried = walked(), 0
    for before, after in pairwise(steps):
        one, other = before.batch, after.batch
        left = {
            (
                one.requests[row].number,
                one.rollouts.tokens[row, : one.rollouts.length[row]].tobytes(),
            )
            for row in np.flatnonzero(one.rollouts.truncated)
        }
        found = set()
        for row in range(int(after.metrics["carried_rows"])):
            given = (other.rollouts.records["origin"][row] == GIVEN).sum()
            tokens = other.rollouts.tokens[row, :given]
            found.add((other.requests[row].number, tokens.tobytes()))
        assert found == left
        carried += len(found)
    assert carried > 10


def test_a_step_has_as_many_rows_as_it_asks_for_up_to_a_group():
    for found in walked():
        told = found.metrics
        assert told["carried_rows"] + told["new_rows"] == len(found.batch)
        assert 16 - 4 < len(found.batch) <= 16
        assert told["passed_over"] == 4 - told["new_rows"] / 4
        numbers = [request.number for request in found.batch.requests]
        for rows in found.batch.groups:
            assert len({numbers[row] for row in rows}) == 1
            assert all(found.batch.requests[row].samples == len(rows) for row in rows)


def test_the_end_of_the_budget_is_no_cut():
    seen = [found.batch.rollouts for found in walked()]
    full = np.concatenate([rollouts.length == BUDGET for rollouts in seen])
    cut = np.concatenate([rollouts.truncated for rollouts in seen])
    assert full.any() and cut.any() and not np.any(full & cut)


def test_a_share_outside_its_range_is_refused():
    with pytest.raises(ValueError, match=r"in_windows: fraction must be in \[0, 1\], got 2"):
        in_windows(2)


@pytest.mark.slow
def test_t_ppo_trains_and_scores_windows_in_their_context(tmp_path):
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy, tmp_path / "run", method="t_ppo", hyperparameters=("window=0.4", "trunk=policy")
    )
    run = training_runs.prepared(config)
    state = run.initial_state()
    first = collect(run, state, 0)
    run_state = replace(state, host=replace(state.host, data=first.state))
    rollouts = collect(run, run_state, 1).batch.rollouts
    assert (rollouts.records["origin"] == GIVEN).any()
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    on = rollouts.mask
    assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)
    training_runs.quietly(config)
    lines = training_runs.metrics(tmp_path / "run")
    assert np.all(np.isfinite(training_runs.values(lines, "loss")))
    assert training_runs.values(lines, "experience/carried_rows")[1] > 0
    assert set(training_runs.values(lines, "ratio/max")) == {1.0}
