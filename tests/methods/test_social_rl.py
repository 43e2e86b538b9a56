"""Advantages over turns: the recurrence over tokens where a turn is one, and by hand elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.methods.agents.social_rl import (
    aligned_with_partner,
    alignment_term,
    generalized_turn_advantage,
    partner_row,
    past_mean,
    turn_values,
)
from rlvr_jax.objectives import generalized_advantages, no_policy_loss, objective, token_mean
from rlvr_jax.types import Rollouts, TokenStats

RTOL = 1e-12  # float64 sums of at most 12 terms


ROWS, TOKENS = 4, 12


ATOL = 1e-14  # float64, sums of a few terms


ADVANTAGE = np.random.default_rng(0).normal(size=(5, 4))


def batch(turn, seed=0, **records):
    """Rows of one group whose tokens on the mask are those with an even turn."""
    random = np.random.default_rng(seed)
    turn = np.broadcast_to(np.asarray(turn, np.int32), (ROWS, TOKENS))
    shape = turn.shape
    return Rollouts.of_responses(
        random.integers(0, 9, shape),
        turn % 2 == 0,
        random.normal(size=ROWS),
        np.zeros(ROWS, int),
        turn=turn,
        process_reward=random.normal(size=shape),
        values=random.normal(size=shape),
        old_logp=np.zeros(shape),
        **records,
    )


def advantage(estimator, rollouts):
    own = objective(estimator, surrogate=no_policy_loss(), aggregation=token_mean())
    stats = TokenStats(logp=jnp.zeros(rollouts.mask.shape))
    return np.asarray(own.signals(stats, rollouts, {}, jax.random.key(0)).advantage)


@pytest.mark.thorough
def test_with_turns_of_one_token_it_is_the_recurrence_over_tokens():
    rollouts = batch(2 * np.arange(TOKENS))
    wanted = generalized_advantages(
        rollouts.records["process_reward"],
        rollouts.records["values"],
        rollouts.mask,
        0.9,
        0.7,
    )
    found = advantage(generalized_turn_advantage(0.9, 0.7), rollouts)
    assert_allclose(found, wanted, rtol=RTOL)
    assert_allclose(turn_values(rollouts), rollouts.records["values"], rtol=RTOL)


def test_a_turn_has_the_sum_of_its_rewards_and_the_value_of_its_first_token():
    turn = [0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 4, -1]
    rollouts = batch(turn)
    found = advantage(generalized_turn_advantage(0.9, 0.7), rollouts)
    pay, value = (
        np.asarray(rollouts.records["process_reward"]),
        np.asarray(rollouts.records["values"]),
    )
    for row in range(ROWS):
        spans = [slice(0, 3), slice(5, 7), slice(8, 11)]
        own, later = np.zeros(TOKENS), 0.0
        for number in (2, 1, 0):
            span = spans[number]
            following = value[row, spans[number + 1].start] if number < 2 else 0.0
            error = pay[row, span].sum() + 0.9 * following - value[row, span.start]
            later = error + 0.9 * 0.7 * later
            own[span] = later
        assert_allclose(found[row], own, rtol=RTOL)
        assert_allclose(turn_values(rollouts)[row, :3], np.full(3, value[row, 0]))


def test_alignment_meets_the_partners_turn_of_the_same_number_wherever_it_stands():
    one = np.array([0, 0, 0, 1, 2, 2, 3, 4, -1, -1, -1, -1])
    two = np.array([0, 1, 1, 1, 2, 3, 4, 4, 4, 4, -1, -1])
    rollouts = batch(np.stack([one, two, one, two]))
    estimator = generalized_turn_advantage(1.0, 1.0)
    own = advantage(estimator, rollouts)
    found = advantage(aligned_with_partner(estimator, 2.0), rollouts)
    first = [[0, 4, 7], [0, 4, 6], [0, 4, 7], [0, 4, 6]]  # where the turns begin
    for row, partner in ((0, 1), (1, 0), (2, 3), (3, 2)):
        mine, other = own[row, first[row]], own[partner, first[partner]]
        past = np.array([0.0, mine[0], mine[:2].mean()])
        wanted = mine + 2 * past * other
        assert_allclose(found[row, first[row]], wanted, rtol=RTOL)
    for row in range(ROWS):
        turn = np.asarray(rollouts.records["turn"][row])
        for number in (0, 2, 4):
            assert len(set(found[row, turn == number].tolist())) == 1
    assert not found[~np.asarray(rollouts.mask)].any()


@pytest.mark.slow
def test_social_rl_plays_a_game_with_itself(tmp_path):
    steps = run_of(tmp_path, "social_rl", task="small_environments:played_sums", response_tokens=16)
    assert_turns_were_learned_from(steps)
    assert max(training_runs.values(steps, "critic/gradient_norm")) > 0
    moves = sum(training_runs.values(steps, "experience/moves"))
    chosen = [training_runs.values(steps, f"experience/chose_{move}") for move in "12"]
    assert sum(map(sum, chosen)) == moves > 0


def test_players_that_are_no_pairs_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must be a multiple of the 2 players of repeated_game"):
        run_of(tmp_path, "social_rl", task="small_environments:played_sums", samples_per_prompt=3)


def test_partners_are_neighbours_by_rollout_id_and_the_last_of_an_odd_group_is_alone():
    group = np.array([3, 8, 3, 3, 8])
    rollout_id = np.array([2, 0, 7, 1, 4])
    found = partner_row(jnp.asarray(group), jnp.asarray(rollout_id))
    np.testing.assert_array_equal(found, [3, 4, -1, 0, 1])
    term = alignment_term(jnp.ones((5, 4)), jnp.asarray(ADVANTAGE), found)
    assert not np.asarray(term)[2].any()
    np.testing.assert_array_equal(term[0], ADVANTAGE[3])


def test_the_past_ends_before_the_present_turn():
    mean = past_mean(jnp.asarray(ADVANTAGE))
    for t in range(4):
        before = ADVANTAGE[:, :t]
        np.testing.assert_allclose(mean[:, t], before.mean(axis=1) if t else 0, atol=ATOL)
