"""SPEAR: answers that were better than their group come back, and are judged by what is usual."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from part_rows import rollouts

from rlvr_jax.experience import Moment, column, experience, plain_outcome, shape, total
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.spear import (
    by_stored,
    call_bonus,
    falling_cosine,
    over_steps,
    replay_good,
    replay_size,
    reply_bonus,
    rollout_mean_fixed_length,
    usual_reward,
)
from rlvr_jax.objectives import Spec, group_centered, objective, reinforce, scale_weight, token_mean
from rlvr_jax.types import Rollouts, TokenStats

NOW = Moment(3, jax.random.key(0), np.arange(4, dtype=np.int32))


def test_replays_are_powers_of_two_and_the_usual_reward_is_a_median():
    assert [replay_size(n, 32) for n in (0, 1, 2, 3, 31, 32, 100)] == [0, 1, 2, 2, 16, 32, 32]
    assert replay_size(9, 5) == 4
    assert usual_reward(np.array([np.nan, 1.0, 0.0, 0.25])) == 0.25
    assert np.isnan(usual_reward(np.full(3, np.nan)))


def test_good_answers_are_kept_replayed_and_then_forgotten():
    chain = experience(stages=[replay_good(replay_rows=4, replay_age=2, replay_groups=8)])
    replayed = 0
    for collected, _, state in numpy_actor.walk(chain, steps=8):
        batch, told = collected.batch, collected.metrics
        kept = state["replay_good"].store
        assert int(kept.held) == told["stored_rows"] <= 8
        if not batch.further:
            assert told["replayed_rows"] == 0
            continue
        (further,) = batch.further
        rollouts, usual = further.rollouts, told["usual_reward"]
        replayed += len(further)
        assert len(further) == told["replayed_rows"] == 4 and told["stored_rows"] == 0
        assert rollouts.records["stored"].all() and (rollouts.reward > usual).all()
        there = rollouts.mask
        wanted = np.broadcast_to((rollouts.reward - usual)[:, None], there.shape)
        np.testing.assert_allclose(rollouts.records["advantage"][there], wanted[there], rtol=1e-6)
        np.testing.assert_allclose(
            rollouts.records["weight"][there], told["replay_weight"], rtol=1e-6
        )
        assert (rollouts.records["advantage"][~there] == 0).all() and (
            rollouts.old_logp[there] < 0
        ).all()
    assert replayed > 0


def test_a_row_without_a_reward_is_in_no_mean_and_is_not_kept():
    def unjudged(rollouts):
        return np.where(np.arange(len(rollouts.reward)) % 4 == 0, np.nan, rollouts.outcome)

    stages = [shape(unjudged), replay_good(replay_rows=64, replay_groups=4)]
    (first,) = numpy_actor.walk(experience(stages=stages), steps=1)
    reward = first[0].batch.rollouts.reward.reshape(4, 4)
    valid = first[0].batch.rollouts.valid.reshape(4, 4)
    assert not valid[:, 0].any() and valid[:, 1:].all()
    state = first[2]["replay_good"]
    np.testing.assert_allclose(state.means, reward[:, 1:].mean(axis=1), rtol=1e-6)
    good = reward[:, 1:] > reward[:, 1:].mean(axis=1, keepdims=True)
    assert int(state.store.held) == good.sum() > 0


class Calling(numpy_actor.NumpyActor):
    """Every second row has called a tool, right or wrong."""

    def grade(self, batch):
        graded = super().grade(batch)
        grades = [
            dataclasses.replace(grade, info={"ended": float(row % 2)})
            for row, grade in enumerate(graded.grades)
        ]
        return graded.graded(grades)


def test_where_there_are_calls_rows_with_one_are_kept():
    chain = recipe("spear", calls=1).experience
    (collected, _, state) = numpy_actor.walk(chain, Calling(), steps=1)[0]
    batch, kept = collected.batch, state["replay_good"].store
    mean = np.repeat([batch.rollouts.reward[rows].mean() for rows in batch.groups], 4)
    good = batch.rollouts.reward > mean
    called = np.arange(16) % 2 == 1
    assert 0 < (good & called).sum() == int(kept.held) < good.sum()
    assert "called" in chain.labels[-2] and "called" not in recipe("spear").experience.labels[-2]


def test_the_groups_of_the_largest_deviation_are_trained():
    chains = [recipe("spear", varied=varied).experience for varied in (0.5, 1)]
    found = [numpy_actor.walk(chain, steps=4) for chain in chains]
    dropped = 0
    for (collected, _, _), (whole, _, _) in zip(*found, strict=True):
        batch, plain = collected.batch, whole.batch
        np.testing.assert_array_equal(batch.rollouts.reward, plain.rollouts.reward)
        spread = [np.std(batch.rollouts.reward[rows]) for rows in batch.groups]
        kept = [batch.rollouts.mask[rows].any() for rows in batch.groups]
        assert collected.metrics["varied_groups"] == np.mean(kept) == 0.5
        lowest = min(s for s, stays in zip(spread, kept, strict=True) if stays)
        assert all(s <= lowest for s, stays in zip(spread, kept, strict=True) if not stays)
        for rows, stays in zip(batch.groups, kept, strict=True):
            wanted = plain.rollouts.mask[rows] if stays else False
            np.testing.assert_array_equal(batch.rollouts.mask[rows], wanted)
        dropped += max(spread) > min(spread)
    assert dropped > 0
    assert "varied_groups" not in found[1][0][0].metrics


def test_answers_grow_too_old():
    chain = experience(stages=[replay_good(replay_rows=64, replay_age=1, replay_groups=4)])
    found = [state["replay_good"].store for _, _, state in numpy_actor.walk(chain, steps=5)]
    for step, store in enumerate(found):
        held = (int(store.first) + np.arange(int(store.held))) % store.capacity
        assert set(store.step[held].tolist()) <= {step - 1, step}
    assert int(found[-1].held) > 0


def test_calls_are_the_turns_of_a_row_or_a_reward_of_the_task():
    mask = np.array([[1, 1, 0], [1, 1, 1]], bool)
    batch = Rollouts.of_responses(
        np.ones((2, 3), int),
        mask,
        np.zeros(2),
        np.zeros(2),
        turn=np.array([[0, 1, 7], [0, 0, 0]]),
        component_rewards=np.array([[5.0], [np.nan]]),
    )
    np.testing.assert_allclose(call_bonus(0.1)(batch), [0.2, 0.1], rtol=1e-6)
    np.testing.assert_allclose(call_bonus(0.1, 0)(batch), [0.5, np.nan], rtol=1e-6)
    np.testing.assert_array_equal(call_bonus(0.1)(batch.replace(turn=None)), [0, 0])
    with pytest.raises(ValueError, match="column must be"):
        call_bonus(0.1, -1)


@pytest.mark.slow
def test_calls_of_tools_are_the_replies_that_a_row_has_read(tmp_path):
    batch = Rollouts.of_responses(
        np.ones((2, 4), int),
        np.ones((2, 4), bool),
        np.zeros(2),
        np.zeros(2),
        turn=np.array([[0, 1, 2, -1], [0, 0, 0, 0]]),
    )
    found, _, _ = reply_bonus(0.1).apply(batch, (), None)
    np.testing.assert_allclose(found, [0.1, 0], rtol=1e-6)
    config = training_runs.settings(
        training_runs.write_policy(tmp_path / "policy"),
        tmp_path / "run",
        task="small_environments:answering_sums",
        method="spear",
        hyperparameters=("tools=None",),
        response_tokens=10,
    )
    training_runs.quietly(config)
    (first, *_) = training_runs.values(
        training_runs.metrics(tmp_path / "run"), "experience/reward/calls"
    )
    assert first > 0


def test_new_and_stored_rows_have_transforms_of_their_own():
    mask = np.array([[1, 1], [1, 0], [1, 1]], bool)
    stored = jnp.array([False, True, True])
    batch = Rollouts.of_responses(
        np.ones((3, 2), int), mask, np.array([1.0, 0, 1]), np.array([0, 0, 0]), stored=stored
    )
    logp = jnp.asarray(np.where(mask, -1.0, 0))
    part = by_stored(scale_weight(2.0), scale_weight(3.0))
    own = objective(group_centered(), [part], surrogate=reinforce(), aggregation=token_mean())
    state, key = own.init(Spec(1, 3, 2)), jax.random.key(0)
    weight = own.signals(TokenStats(logp=logp), batch, state, key).weight
    np.testing.assert_array_equal(np.where(mask, weight, 0), [[2, 2], [3, 0], [3, 3]])
    plain = batch.replace(stored=None)
    weight = own.signals(TokenStats(logp=logp), plain, state, key).weight
    assert np.all(np.asarray(weight)[mask] == 2)


def test_a_mean_over_rollouts_of_sums_by_a_constant():
    mask = jnp.array([[True, True, False], [True, False, False], [False] * 3])
    weights = rollout_mean_fixed_length(5).weights(mask, jnp.float32)
    np.testing.assert_allclose(weights, np.full((3, 3), 1 / 10), rtol=1e-6)
    with pytest.raises(ValueError, match="length must be"):
        rollout_mean_fixed_length(0)


@pytest.mark.slow
def test_replayed_answers_are_learned_from_in_an_update_of_their_own(tmp_path):
    model = training_runs.write_policy(tmp_path / "policy")
    given = ("replay_rows=4", "replay_steps=2", "calls=1", "bonus_steps=3")
    config = training_runs.settings(
        model, tmp_path / "run", method="spear", hyperparameters=given, steps=5
    )
    training_runs.quietly(config)
    lines = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(lines, "experience/replayed_rows")) > 0
    assert max(training_runs.values(lines, "further/gradient_norm")) > 0
    factor = training_runs.values(lines, "experience/reward_factor")
    assert factor[0] == 1 and factor[-1] == 0
    assert any(training_runs.values(lines, "experience/reward/calls"))


def test_a_part_that_counts_nothing_need_not_be_known():
    own = total({"outcome": plain_outcome, "first": column(0)}, {"first": 0.0})
    np.testing.assert_array_equal(own(rollouts()), [1, 0, 1, 0])
    later = total({"outcome": plain_outcome, "fading": over_steps(column(0), falling_cosine(5))})
    value, _, told = later.apply(rollouts(), ((), ()), NOW._replace(step=9))
    np.testing.assert_array_equal(value, [1, 0, 1, 0])
    assert told["reward/fading"] == 0
    value, _, _ = later.apply(rollouts(), ((), ()), NOW._replace(step=4))
    assert np.isnan(value).tolist() == [False, False, False, True]


def test_factors_move_with_the_step_and_stay_at_the_end():
    falling = falling_cosine(200)
    assert (falling(0), falling(100), falling(200), falling(999)) == (1, 0.5, 0, 0)
    own = over_steps(plain_outcome, falling_cosine(6))
    value, _, told = own.apply(rollouts(), (), NOW)
    np.testing.assert_allclose(value, [0.5, 0, 0.5, 0], rtol=1e-15)  # one cosine
    assert told["reward_factor"] == pytest.approx(0.5)
