"""Rows that branch where an environment answers: told alike, scored as drawn, trained once each."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
import training_runs
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal
from small_environments import PAYOFFS, Answering, Counting
from test_reply_log import Moody, Remembering

from rlvr_jax.experience import (
    RunActor,
    SampleRequest,
    StepContext,
    branch_turns,
    experience,
)
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.runs.loop import evaluate_run
from rlvr_jax.runs.step import collect
from rlvr_jax.tools import Reply, repeated_game

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats
GREEDY = 1e-6
PAUSE, WORD = 11, 1  # what the actor of numpy reads where it writes "b" and "c"
EAGER = {"base": 1.0, "weight": 0.0, "top": 3, "window": 2}


def collected(environment=None, steps=6, samples=6, **changes):
    chain = experience(draw=branch_turns(environment or Counting(), **{**EAGER, **changes}))
    own = numpy_actor.setting(chain, prompts=12, samples=samples)
    return [found for found, _, _ in numpy_actor.walk(chain, own=own, steps=steps)]


def rows_of(environment=None, **changes):
    for found in collected(environment, **changes):
        rollouts = found.batch.rollouts
        for row in range(len(found.batch)):
            yield rollouts, row, int(rollouts.length[row])


def test_groups_have_the_rows_that_were_asked_for_and_some_are_forks():
    forked = 0
    for found in collected():
        told = found.metrics
        assert [len(rows) for rows in found.batch.groups] == [6] * 12
        assert told["forked_rows"] + told["begun_rows"] == told["answers"] == 72
        assert told["forked_rows"] == np.sum(found.batch.rollouts.parent >= 0)
        forked += told["forked_rows"]
    assert forked > 3
    for found in collected(base=0.0):
        assert found.metrics["forked_rows"] == 0 and np.all(found.batch.rollouts.parent == -1)


def test_replies_are_told_as_without_branches():
    replies = 0
    for rollouts, row, length in rows_of():
        tokens, told = rollouts.tokens[row, :length], rollouts.records["origin"][row, :length] == 2
        turn = rollouts.records["turn"][row, :length]
        replies += told.sum()
        assert_array_equal(rollouts.mask[row, :length], ~told)
        for at in np.flatnonzero(told):
            assert tokens[at] == WORD and tokens[at - 1] == PAUSE
        assert_array_equal(turn % 2 == 1, told)
        assert np.all(np.diff(turn) >= 0) and turn[0] == 0
        assert (
            not rollouts.mask[row, length:].any()
            and not rollouts.records["origin"][row, length:].any()
        )
        assert np.all(rollouts.records["turn"][row, length:] == -1)
        own = rollouts.mask[row, :length]
        logp = numpy_actor.NumpyActor._logp(tokens, 0)
        assert_allclose(rollouts.behaviour_logp[row, :length][own], logp[own], rtol=1e-6)
        paid = np.flatnonzero(rollouts.records["process_reward"][row])
        assert set(np.flatnonzero(told) - 1) <= set(paid)
    assert replies > 10


def test_a_fork_goes_on_behind_a_reply_to_a_later_turn_than_the_first():
    forks = 0
    for rollouts, row, length in rows_of():
        parent, cut = rollouts.parent[row], rollouts.branch_position[row]
        if parent < 0:
            continue
        forks += 1
        assert (
            rollouts.records["origin"][row, cut - 1] == 2
            and rollouts.records["turn"][row, cut - 1] >= 3
        )
        assert (
            length > cut
            and rollouts.records["turn"][row, cut] == rollouts.records["turn"][row, cut - 1] + 1
        )
        for name in ("tokens", "mask", "origin", "turn", "behaviour_logp", "process_reward"):
            values = rollouts.get(name)
            assert_array_equal(values[row, :cut], values[parent, :cut])
    assert forks > 3


def test_a_reply_that_rows_share_is_asked_for_once():
    for found in collected():
        rollouts, told = found.batch.rollouts, found.metrics
        places = np.arange(rollouts.tokens.shape[1])[None]
        inherited = places < rollouts.branch_position[:, None]
        replies = (rollouts.records["origin"] == 2) & ~inherited
        assert told["tool_tokens"] == replies.sum()
        # Each reply is a word; those without room are asked for and left out.
        assert told["answered"] == replies.sum() + told.get("cut_replies", 0)
        assert told["sampled_tokens"] == np.sum(rollouts.mask & ~inherited)


def sampled(environment, log):
    chain = experience(draw=branch_turns(environment, **EAGER))
    setting = replace(numpy_actor.setting(chain, prompts=12, samples=8), reply_log=log)
    return chain.collect(numpy_actor.NumpyActor(), chain.init(setting), 3, setting).batch.rollouts


def test_a_step_that_is_drawn_again_is_told_the_same(tmp_path):
    path = tmp_path / "told.jsonl"
    first, again = sampled(Moody(), ReplyLog(path)), sampled(Moody(), ReplyLog(path))
    other = sampled(Moody(), ReplyLog())
    assert np.any(first.parent >= 0)
    for name in ("tokens", "length", "turn", "origin", "parent", "process_reward"):
        assert_array_equal(first.get(name), again.get(name))
    assert np.any(first.tokens != other.tokens)


def test_states_of_forks_are_made_anew_where_only_the_words_are_known(tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    # The reward is the number of answers so far: a fork without its parent's would differ.
    first = sampled(Remembering(), ReplyLog(whole))
    lines = whole.read_text().splitlines(keepends=True)
    kept = [line for line in lines if '/0", "step"' in line or '/1", "step"' in line]
    assert 0 < len(kept) < len(lines)
    cut.write_text("".join(kept))
    again = sampled(Remembering(), ReplyLog(cut))
    for found in (first, again):
        for row in np.flatnonzero(found.parent >= 0):
            ends = np.flatnonzero(np.diff(found.records["turn"][row]) == 1)
            paid = found.records["process_reward"][
                row, ends[found.records["turn"][row, ends] % 2 == 0]
            ]
            assert_array_equal(paid, 1 + np.arange(len(paid)))


def test_an_environment_that_judges_gives_the_grades():
    seen = []
    for found in collected(Counting(judges=True)):
        rollouts = found.batch.rollouts
        replies = np.sum(rollouts.records["process_reward"], axis=1) / 0.25
        assert_array_equal(rollouts.outcome, (replies >= 2).astype(np.float32))
        seen.append(rollouts.outcome.mean())
    assert 0 < np.mean(seen) < 1


class Losing(Counting):
    """Whose second replies are lost, with which a row is over."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return Reply(state, lost=True, done=True) if told.text and state == 1 else told


def test_a_lost_reply_is_no_verdict_of_the_rows_that_waited_for_it():
    lost = 0
    for found in collected(Losing()):
        gone = np.array([grade.outcome is None for grade in found.batch.grades])
        assert gone.sum() == found.metrics["lost_answers"]
        lost += gone.sum()
        for row in np.flatnonzero(gone):
            length = found.batch.rollouts.length[row]
            # The end that nobody drew.
            assert found.batch.rollouts.tokens[row, length - 1] == numpy_actor.STOP
            assert found.batch.rollouts.records["origin"][row, length - 1] == 2
    assert lost


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"branch_turns: base must be in \[0, 1\], got 2"):
        branch_turns(base=2)
    with pytest.raises(ValueError, match="turns: limit must be at least 1, got 0"):
        branch_turns(limit=0)
    chains = {
        "must be given for task 'numbered', which has none": branch_turns(top=3),
        "top must be at most the vocabulary.*got 20 and 12": branch_turns(Counting(), top=20),
        "must have one player": branch_turns(repeated_game(PAYOFFS, rounds=2), top=3),
    }
    for message, draw in chains.items():
        chain = experience(draw=draw)
        with pytest.raises(ValueError, match=f"branch_turns: .*{message}"):
            chain.init(numpy_actor.setting(chain))


# With our actor: a policy that calls a tool by "+ … =", and reads two words.


class Inviting(Answering):
    """Has whoever repeats its last word call again, twice."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return replace(told, text="3 =") if told.text and state < 2 else told


ASKED = ("tools=None", "top=5", "window=2", "base=1", "weight=0")
METHODS = ("arpo", "aepo_rollout", "aepo_agentic")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


def settings(policy, run_dir, method, **changes):
    return training_runs.settings(
        policy,
        run_dir,
        task="small_environments:answering_sums",
        method=method,
        response_tokens=14,
        samples_per_prompt=6,
        hyperparameters=ASKED,
        **changes,
    )


@pytest.fixture(scope="module", params=everyday(METHODS, "arpo", "aepo_agentic"))
def run(request, policy):
    return training_runs.prepared(settings(policy, "unused", request.param))


@pytest.mark.thorough
def test_every_token_is_scored_in_the_context_it_was_drawn_in(run):
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    on, shown = rollouts.mask, rollouts.records["origin"] == 2
    assert np.any(rollouts.parent >= 0) and shown.sum() > 4 and not np.any(on & shown)
    scored = run.scorer(state.device)(rollouts, ["logp", "entropy"], "current")
    assert_allclose(rollouts.behaviour_logp[on], scored["logp"][on], atol=FLOAT32)
    assert_allclose(rollouts.entropy[on], scored["entropy"][on], atol=FLOAT32)


@pytest.mark.slow
def test_a_turn_drawn_greedily_is_what_a_fresh_prompt_would_give(policy):
    run = training_runs.prepared(settings(policy, "unused", "arpo"))
    state, own = run.initial_state(), run.start.sampler
    params, scorer = run.sampler_params(state.device), run.scorer(state.device)
    actor = RunActor(own, params, run.start.tables, 0, scorer)
    requests = [
        SampleRequest(prompt, n, 6, temperature=GREEDY)
        for n, prompt in enumerate(run.task.train[:4])
    ]
    turn = StepContext(0, jax.random.key(0), run.setting, None)
    draw = branch_turns(Inviting(stops=("=",)), base=1.0, top=5)
    batch, _, told = draw.apply(requests, actor, (), turn)
    assert told["forked_rows"] > 0
    checked = 0
    for row, request in enumerate(batch.requests):
        length = int(batch.rollouts.length[row])
        shown = np.append(batch.rollouts.records["origin"][row, :length] == 2, True)
        tokens = batch.rollouts.tokens[row]
        for at in np.flatnonzero(shown[:-2] & ~shown[1:-1]) + 1:
            end = at + int(np.argmax(shown[at:]))
            fresh = actor.draw([replace(request, samples=1, given=tokens[:at].tolist())], turn.key)
            assert_array_equal(fresh.rollouts.tokens[0, at:end], tokens[at:end])
            checked += 1
    assert checked


@pytest.mark.slow
def test_evaluations_are_samples_in_turns_without_branches(run):
    draw = run.experience.draw[1]
    assert draw.of_policy and draw.evaluation.label.startswith("turns(")
    assert evaluate_run(run, run.initial_state(), 0).n >= 4


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_it_trains_and_the_ratio_is_one_at_first(method, policy, tmp_path):
    training_runs.quietly(settings(policy, tmp_path / "run", method, steps=2, samples_stored=500))
    lines = [line for line in training_runs.metrics(tmp_path / "run") if "loss" in line]
    assert sum(training_runs.values(lines, "experience/forked_rows")) > 0
    assert min(training_runs.values(lines, "experience/tool_tokens")) > 0
    assert max(training_runs.values(lines, "gradient_norm")) > 0
    for bound in ("max", "min"):
        assert set(training_runs.values(lines, f"ratio/{bound}")) == {1.0}
        assert_allclose(training_runs.values(lines, f"sampler_ratio/{bound}"), 1, atol=2 * FLOAT32)
    (first, *_) = sorted((tmp_path / "run" / "samples").iterdir())
    rows = [json.loads(line) for line in first.read_text().splitlines()]
    for row in rows:
        assert len(row["turn"]) == len(row["origin"]) == len(row["tokens"])
        written = zip(row["origin"], row["turn"], strict=True)
        assert all((origin == 2) == turn % 2 for origin, turn in written)
    assert any(2 in row["origin"] for row in rows)
