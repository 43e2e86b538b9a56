"""Batches that are no plain groups: dealt out to updates that are compiled for few sizes."""

import dataclasses

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import concatenate
from rlvr_jax.runs.step import collect
from rlvr_jax.training.arrangement import Shuffle, arrange, update_sizes
from rlvr_jax.training.learning import learn
from rlvr_jax.training.plan import BatchPlan

# float32 gradients of other sums over some hundred tokens.
ATOL = 2e-5
PLAN = BatchPlan(prompts=4, samples=4, minibatches=2, micro_batches=2)


@pytest.fixture(scope="module")
def sampled(model):
    settings = training_runs.settings(model, "unused", method="grpo")
    run = training_runs.prepared(settings)
    return run, collect(run, run.initial_state(), 0).batch


def dealt(rollouts, plan=PLAN, most=2.0, **changes):
    return arrange(plan, rollouts, False, None, Shuffle(0, 3), most)


def test_a_batch_of_plain_groups_stays_as_it_is(sampled):
    rollouts = sampled[1].rollouts
    made = dealt(rollouts)
    assert made.rollouts is rollouts and made.plan == PLAN
    assert sorted(np.concatenate(made.orders).tolist()) == list(range(16))


def test_sizes_are_few_and_in_whole_pieces():
    assert update_sizes(PLAN, 2.0, None) == [4, 8, 16]
    assert update_sizes(BatchPlan(64, 8, 4, micro_batches=2), 1.0, None) == [64, 128]


@pytest.mark.parametrize("kept", [range(16), range(15), [0, 1, 2, 3, 4, 8, 9, 10, 12], [5]])
def test_every_row_is_in_one_update_and_groups_stay_whole(sampled, kept):
    rows = np.array([*kept])
    rollouts = sampled[1].take(rows).renumbered().rollouts
    for made in (dealt(rollouts), dealt(rollouts, dataclasses.replace(PLAN, epochs=2))):
        number = len(made.rollouts.group)
        for epoch in range(made.plan.epochs):
            parts = made.orders[2 * epoch : 2 * epoch + 2]
            assert sorted(np.concatenate(parts).tolist()) == list(range(number))
            group = made.rollouts.only_valid().group
            groups = [set(group[part].tolist()) for part in parts]
            assert not groups[0] & groups[1]
        assert not made.rollouts.mask[len(rows) :].any()


def test_groups_without_room_are_left_out_whole(sampled):
    rollouts = concatenate([sampled[1]] * 3).rollouts
    made = dealt(rollouts, most=1.0)
    inside = np.concatenate(made.orders)
    assert made.left_out == 32 and len(inside) == 16
    assert set(np.unique(rollouts.group[inside], return_counts=True)[1]) == {4}


def test_groups_whose_valid_rows_earned_the_same_come_last(sampled):
    rollouts = sampled[1].rollouts
    reward = np.tile(np.float32([1, 0, 1, 1]), 4)
    reward[[0, 2]], reward[5], reward[9:12] = 0, 1, 0
    valid = np.ones(16, bool)
    valid[[3, 9]] = False
    made = dealt(
        rollouts.replace(reward=reward, valid=valid), dataclasses.replace(PLAN, minibatches=1)
    )
    # The first group but for its ungraded row, and the second one.
    assert made.orders[0][8:].tolist() == [*range(8)]


@pytest.mark.thorough
def test_empty_rows_change_nothing(model):
    """Three groups, filled up, and four of which the last one is cleared: the same update.

    Weights are not compared: Adam's first step makes much of gradients that are all rounding.
    """
    run = training_runs.prepared(
        training_runs.settings(model, "unused", method="grpo", minibatches=1)
    )
    batch = collect(run, run.initial_state(), 0).batch
    few = batch.take(np.arange(12)).renumbered().rollouts
    cleared = batch.without(np.arange(16) >= 12).rollouts
    filled, wanted = (
        learn(run.learner, run.initial_state().device, rows, 0) for rows in (few, cleared)
    )
    for name in ("loss", "gradient_norm", "entropy"):
        np.testing.assert_allclose(filled[1][name], wanted[1][name], atol=ATOL, err_msg=name)
    assert wanted[1]["gradient_norm"] > 100 * ATOL


@pytest.mark.thorough
def test_stored_rows_keep_their_old_log_probs(sampled):
    run, batch = sampled
    rollouts = batch.rollouts
    old = np.where(rollouts.mask, -1.5, 0).astype(np.float32)
    stored = rollouts.group == 1
    kept = rollouts.replace(stored=stored, old_logp=old)
    _, _, records = learn(run.learner, run.initial_state().device, kept, 0)
    np.testing.assert_array_equal(records["old_logp"][stored], old[stored])
    fresh = records["old_logp"][~stored]
    np.testing.assert_allclose(fresh, records["logp"][~stored], atol=ATOL)
    wanted = np.exp(np.where(rollouts.mask, records["logp"] - old, 0))[stored]
    np.testing.assert_allclose(records["ratio"][stored], wanted, rtol=1e-4)


@pytest.mark.thorough
def test_rows_drawn_from_another_prompt_have_old_log_probs_of_that_context(sampled):
    run, batch = sampled
    rollouts = batch.rollouts
    shown = np.roll(rollouts.prompt_tokens, 4, axis=0)
    length = np.roll(rollouts.prompt_length, 4)
    length[:8] = 0  # the first two groups are trained as they were drawn
    hinted = rollouts.replace(shown_tokens=shown, shown_length=length)
    _, _, records = learn(run.learner, run.initial_state().device, hinted, 0)
    scorer = run.scorer(run.initial_state().device)
    drawn_from = rollouts.replace(prompt_tokens=shown, prompt_length=np.maximum(length, 1))
    wanted = scorer(drawn_from, ["logp"], "current")["logp"]
    np.testing.assert_allclose(records["old_logp"][8:], wanted[8:], atol=ATOL)
    np.testing.assert_allclose(records["ratio"][:8], 1, atol=ATOL)
    assert np.abs(records["ratio"][8:] - 1).max() > ATOL


@pytest.mark.thorough
def test_further_batches_are_updates_of_their_own(sampled):
    run, batch = sampled
    rows = batch.take(np.arange(4)).renumbered().rollouts
    advantage = np.where(rows.mask, 1.0, 0).astype(np.float32)
    more = rows.replace(
        advantage=advantage,
        stored=np.ones(4, bool),
        old_logp=np.where(rows.mask, -2.0, 0).astype(np.float32),
    )
    state, metrics, _ = learn(run.learner, run.initial_state().device, batch.rollouts, 0, [more])
    assert int(state.updates) == 1 + run.config.plan.updates
    assert metrics["further/updates"] == 1 and np.isfinite(metrics["further/loss"])


@pytest.mark.thorough
def test_a_batch_with_prompts_that_differ_in_a_group_scores_each_row_with_its_own(sampled):
    run, batch = sampled
    rollouts = batch.rollouts
    prompts, length = rollouts.prompt_tokens.copy(), rollouts.prompt_length.copy()
    prompts[1], length[1] = prompts[4], length[4]
    mixed = rollouts.replace(prompt_tokens=prompts, prompt_length=length)
    _, _, records = learn(run.learner, run.initial_state().device, mixed, 0)
    wanted = run.scorer(run.initial_state().device)(mixed, ["logp"], "current")["logp"]
    np.testing.assert_allclose(records["logp"], wanted, atol=ATOL)
    jax.clear_caches()
