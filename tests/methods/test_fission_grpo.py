"""Failed answers that are gone on from."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.experience import call_reward, experience, trained_reward
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.rewards.tool_calls import argument_f1
from rlvr_jax.methods.agents.fission_grpo import (
    empty_contexts,
    last_error,
    newest_contexts,
    push_context,
    recover,
)
from rlvr_jax.objectives import GIVEN, TOOL, group_deviation, group_std
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats


def test_the_worked_example_of_the_buffer():
    contexts, names = empty_contexts(3, 4), "abc"
    for text in ("a1", "a2", "a3", "b1", "c1"):
        tokens = [names.index(text[0]), int(text[1])]
        contexts = push_context(contexts, names.index(text[0]), tokens, per_prompt=2)

    def held(places):
        return [f"{names[n]}{i}" for n, i in contexts["tokens"][places, :2].tolist()]

    order = np.argsort(contexts["order"])
    assert held(order) == ["a3", "b1", "c1"]
    places, left = newest_contexts(contexts, 2)
    assert held(places) == ["c1", "b1"]
    assert np.sum(left["number"] >= 0) == 1


def test_the_worked_examples_of_the_rewards():
    made = [("search", {"q": "a", "k": 5})]
    wanted = [("search", {"q": "a", "k": 3})]
    assert argument_f1(made[0][1], wanted[0][1]) == 0.5
    assert call_reward(made, wanted) == 0.75
    assert trained_reward(1, 0.75, 0, 0.25) == pytest.approx(0.895833, abs=5e-7)
    two = [("search", {"q": "a"}), ("open", {})]
    assert call_reward(two, [("search", {"q": "a"})]) == 0.5
    assert call_reward(two, [("close", {})]) == 0.0
    assert call_reward([], []) == 1.0 and call_reward([], wanted) == 0.0
    assert call_reward([("f", {}), ("f", {"x": 1})], [("f", {}), ("f", {"x": 1})]) == 1.0


def walked(**options):
    chain = experience(stages=[recover(**{"contexts": 2, "capacity": 4, **options})])
    return [found for found, _, _ in numpy_actor.walk(chain, steps=4)]


def test_recoveries_are_groups_of_their_own_that_begin_with_a_failure():
    some = 0
    for found in walked():
        rollouts, batch = found.batch.rollouts, found.batch
        groups = int(found.metrics["recovery_groups"])
        assert len(batch.groups) == 4 + groups
        for rows in batch.groups[4:]:
            some += 1
            given = rollouts.records["origin"][rows] == GIVEN
            assert given.any() and not rollouts.mask[rows][given].any()
            # All recoveries of a group begin alike.
            number = given.sum(axis=1)
            assert np.ptp(number) == 0
            front = rollouts.tokens[rows][:, : number[0]]
            assert_array_equal(front, np.broadcast_to(front[0], front.shape))
            outcome = rollouts.outcome[rows]
            assert rollouts.mask[rows].any() == (outcome.min() < outcome.max())
    assert some > 2


def test_nothing_is_asked_before_the_buffer_is_full():
    told = [found.metrics for found in walked(contexts=4, per_prompt=1)]
    assert all(one["recovery_groups"] in (0, 4) for one in told)
    assert all(one["failed_rows"] > 0 for one in told)
    silent = walked(feedback=lambda prompt, response: None)
    assert all(found.metrics["failed_rows"] == 0 for found in silent)


def test_recovery_rewards_are_normalized_among_themselves():
    reward, group = np.array([1.0, 0, 0, 1]), np.zeros(4, np.int32)
    found = group_deviation(reward, group) / (group_std(reward, group) + 1e-6)
    assert_allclose(found, np.array([1, -1, -1, 1]) * 0.866024, atol=5e-7)


@pytest.mark.parametrize("name", ["capacity", "per_prompt", "contexts"])
def test_counts_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"recover: {name} must be at least 1, got 0"):
        recover(**{name: 0})


@pytest.mark.thorough
def test_recoveries_are_scored_in_their_context_and_every_token_counts_once(tmp_path):
    policy = training_runs.write_policy(tmp_path / "policy")
    run = training_runs.prepared(
        training_runs.settings(policy, "unused", method="fission_grpo", response_tokens=10)
    )
    state = run.initial_state()
    collected = collect(run, state, 0)
    rollouts = collected.batch.rollouts
    assert (rollouts.records["origin"] == GIVEN).any()
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    on = rollouts.mask
    assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)
    assert on.sum() <= collected.metrics["sampled_tokens"]


def test_an_error_that_was_told_is_what_a_recovery_reads():
    assert last_error("4") is None
    assert last_error("a\nError: no\n b") == " The call failed. Error: no Try again. "
    assert "Error: two." in last_error("<output>Error: one.</output> <output>Error: two.</output>")


@pytest.mark.slow
def test_recoveries_from_a_tools_error_call_it_again(tmp_path, monkeypatch):
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, "Error:"])
    policy = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    config = training_runs.settings(
        policy,
        "unused",
        task="small_environments:failing_sums",
        method="fission_grpo",
        hyperparameters=("tools=None",),
        response_tokens=24,
    )
    run = training_runs.prepared(config)
    recovered, state = 0, run.initial_state()
    for step in range(3):
        collected = collect(run, state, step)
        state = replace(state, host=replace(state.host, data=collected.state))
        rollouts, groups = collected.batch.rollouts, collected.batch.groups
        for rows in groups[config.sampling.prompts_per_step :]:
            for row in rows:
                given = rollouts.records["origin"][row] == GIVEN
                begins = collected.batch.tokenizer.decode(rollouts.tokens[row][given])
                assert "=" in begins and not rollouts.mask[row][given].any()
                recovered += np.any(rollouts.records["origin"][row] == TOOL)
        on = rollouts.mask
        logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
        assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)
    assert recovered > 0


@pytest.mark.slow
def test_it_trains_on_brackets(tmp_path):
    lines = training_runs.on_brackets("fission_grpo", tmp_path / "run", steps=3, task="brackets")
    assert sum(training_runs.values(lines, "experience/recovery_groups")) > 0
    assert np.all(np.isfinite(training_runs.values(lines, "loss")))
    # However old a failed answer is, its recovery is drawn by the weights that learn from it.
    for bound in ("max", "min"):
        assert set(training_runs.values(lines, f"ratio/{bound}")) == {1.0}
