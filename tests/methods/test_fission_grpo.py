"""Failed answers that are gone on from."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal
from transformers import AutoTokenizer

from rlvr_jax.experience import SampleRequest, call_reward, experience, trained_reward
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.parts import StepContext, Written
from rlvr_jax.experience.rewards.tool_calls import argument_f1
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.fission_grpo import (
    empty_contexts,
    failures,
    newest_contexts,
    push_context,
    recover,
    rewarded,
)
from rlvr_jax.objectives import GIVEN, TOOL, group_deviation, group_std
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks import Grade, load

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
            reward = rollouts.reward[rows]
            assert rollouts.mask[rows].any() == (reward.min() < reward.max())
    assert some > 2


def test_nothing_is_asked_before_the_buffer_is_full():
    told = [found.metrics for found in walked(contexts=4, per_prompt=1)]
    assert all(one["recovery_groups"] in (0, 4) for one in told)
    assert all(one["failed_rows"] > 0 for one in told)
    # The grades have no text of a judge.
    silent = walked(feedback="judge")
    assert all(found.metrics["stored_contexts"] == 0 for found in silent)


def test_recovery_rewards_are_normalized_among_themselves():
    reward, group = np.array([1.0, 0, 0, 1]), np.zeros(4, np.int32)
    found = group_deviation(reward, group) / (group_std(reward, group) + 1e-6)
    assert_allclose(found, np.array([1, -1, -1, 1]) * 0.866024, atol=5e-7)


@pytest.mark.parametrize("name", ["capacity", "per_prompt", "contexts"])
def test_counts_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"recover: {name} must be at least 1, got 0"):
        recover(**{name: 0})


@pytest.mark.thorough
def test_recoveries_are_scored_in_their_context_and_every_token_counts_once():
    sizes = {"prompts_per_step": 16, "response_tokens": 0}
    model = load("noted_calculations").base_model
    own = {"task": "noted_calculations", "method": "fission_grpo", **sizes}
    run = training_runs.prepared(training_runs.settings(model, "unused", **own))
    state = run.initial_state()
    collected = collect(run, state, 0)
    rollouts = collected.batch.rollouts
    assert (rollouts.records["origin"] == GIVEN).any()
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    on = rollouts.mask
    assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)
    assert on.sum() <= collected.metrics["sampled_tokens"]


def of_letters(*responses):
    """Rows of one sum and one product in letters, as (setting, actor, batch)."""
    task = load("noted_calculations")
    tokenizer = AutoTokenizer.from_pretrained(task.base_model)
    actor = numpy_actor.NumpyActor(response_tokens=32, tokenizer=tokenizer)
    numbers = [next(n for n, p in enumerate(task.train) if p.text == t) for t, _ in responses]
    requests = [SampleRequest(task.train[number], number, 1) for number in numbers]
    tokens = [tokenizer(text, add_special_tokens=False).input_ids for _, text in responses]
    chain = recipe("fission_grpo", tools=None).experience
    setting = numpy_actor.setting(chain, task)
    return setting, actor, actor.written(requests, tokens)


def test_the_context_of_an_error_ends_after_the_reply_to_the_last_one():
    rows = ("37*46=", "[37*47]?;[37*48]?;1502."), ("37*46=", "1502.")
    setting, actor, batch = of_letters(*rows)
    origin = np.zeros(batch.rollouts.tokens.shape, np.int32)
    paid = np.zeros(origin.shape, np.float32)
    for call in (7, 16):
        origin[0, call : call + 2], paid[0, call - 1] = TOOL, -1
    batch = batch.with_rollouts(origin=origin, process_reward=paid, turn=np.zeros_like(origin))
    ((row, tokens),) = failures(batch.graded([Grade(0.0)] * 2), actor, setting)
    assert row == 0 and actor.tokenizer.decode(tokens) == "[37*47]?;[37*48]?;"
    assert not failures(batch.graded([Grade(1.0)] * 2), actor, setting)


def test_form_outcome_and_calls_are_rewarded_by_the_completed_fraction():
    rows = (
        ("37*46=", "[37*46]1702;1702."),
        ("37*46=", "1702."),
        ("37*46=", "[37*47]?;1502."),
        ("37*46=", "[37*46"),
        ("37+46=", "83."),
    )
    setting, _, batch = of_letters(*rows)
    grades = [Grade(1.0), Grade(1.0), Grade(0.0), Grade(0.0), Grade(1.0)]
    context = StepContext(2, None, replace(setting, steps=9), None)
    rewarded_rows, metrics = rewarded(batch.graded(grades), "task", 0.5, context)
    # A quarter of the run is done: w_form = 1.75 and w_correct = 1.25. Outcome and calls of the
    # rows: 1 and 1, 1 and 0, 0 and 0.5 (the name without the argument), 0 and 0, 1 and 1.
    form, correct = np.array([1, 1, 1, 0, 1]), np.array([1, 0.5, 0.25, 0, 1])
    assert_allclose(rewarded_rows.rollouts.reward, (1.75 * form + 1.25 * correct) / 3, atol=1e-6)
    assert metrics["form_reward"] == 0.8 and metrics["correct_reward"] == pytest.approx(0.55)


class Telling(numpy_actor.NumpyActor):
    """An actor whose feedback is the last word of the prompt, its answer."""

    def write(self, chats, key, attempts, sampling=None):
        return [Written(chat[-1]["content"].split("\n")[0].split()[-1], 1) for chat in chats]


def test_feedback_that_tells_the_answer_is_refused():
    task = numpy_actor.numbered_task()
    known = [replace(p, text=f"{n} is {n + 50}", answer=n + 50) for n, p in enumerate(task.train)]
    chain = experience(stages=[recover("policy", contexts=1)])
    own = numpy_actor.setting(chain, replace(task, train=known))
    ((found, _, _),) = numpy_actor.walk(chain, Telling(), 1, own=own)
    assert found.metrics["failed_rows"] > 0 and found.metrics["stored_contexts"] == 0
    assert found.metrics["refused_feedback"] > 0


def test_replies_as_feedback_need_tools():
    with pytest.raises(ValueError, match=r"fission_grpo: feedback must be .* got 'reply'"):
        recipe("fission_grpo", feedback="reply")


@pytest.mark.slow
def test_recoveries_from_a_tools_error_call_it_again(tmp_path, monkeypatch):
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, "Error:"])
    policy = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    config = training_runs.settings(
        policy,
        "unused",
        task="small_environments:failing_sums",
        method="fission_grpo",
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
def test_it_trains_on_recoveries(tmp_path):
    own = {"steps": 3, "task": "noted_calculations", "prompts_per_step": 16}
    lines = training_runs.on_brackets("fission_grpo", tmp_path / "run", **own)
    assert sum(training_runs.values(lines, "experience/recovery_groups")) > 0
    assert np.all(np.isfinite(training_runs.values(lines, "loss")))
    # However old a failed answer is, its recovery is drawn by the weights that learn from it.
    for bound in ("max", "min"):
        assert set(training_runs.values(lines, f"ratio/{bound}")) == {1.0}
