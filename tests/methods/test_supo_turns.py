"""Answers in turns with an environment, in segments between which the policy sums up."""

import json
from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal
from small_environments import PAYOFFS, Answering, Counting
from test_reply_log import Moody, Remembering

from rlvr_jax.experience import RunActor, SampleRequest, StepContext, experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.supo import summaries, summarized_turns
from rlvr_jax.objectives import GIVEN, TOOL
from rlvr_jax.runs.loop import evaluate_run
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks.sums.calculations import BASE_MODEL
from rlvr_jax.tools import Reply, repeated_game

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats
GREEDY = 1e-6
PAUSE, WORD = 11, 1  # what the actor of numpy reads where it writes "b" and "c"
CONTEXT, SUMMARY = 3, 2
SHORT = {"most": 2, "instruction": "a", "context": CONTEXT, "summary": SUMMARY}


def collected(environment=None, steps=6, **changes):
    draw = summarized_turns(environment or Counting(), **{**SHORT, **changes})
    chain = experience(draw=draw)
    own = numpy_actor.setting(chain, prompts=12, samples=6)
    return [found for found, _, _ in numpy_actor.walk(chain, own=own, steps=steps)]


def answers_of(environment=None, **changes):
    """Of each answer the records and its rows, in order."""
    for found in collected(environment, **changes):
        rollouts = found.batch.rollouts
        for number in np.unique(rollouts.records["trace"]):
            yield rollouts, np.flatnonzero(rollouts.records["trace"] == number)


def test_a_segment_is_turns_and_is_summed_up_behind_the_first_one_that_is_beyond_its_context():
    (instruction,), stop = numpy_actor.NumpyActor().encode("a"), numpy_actor.STOP
    lengths, behind_replies = [], 0
    for rollouts, rows in answers_of(reply_tokens=1):
        lengths.append(len(rows))
        carried, turn = [], 0
        for row, after in pairwise([*rows, None]):
            length = rollouts.length[row]
            tokens, origin = rollouts.tokens[row, :length], rollouts.records["origin"][row, :length]
            assert_array_equal(rollouts.mask[row, :length], origin == 0)
            assert (
                not rollouts.mask[row, length:].any()
                and not rollouts.records["origin"][row, length:].any()
            )
            assert tokens[: len(carried)].tolist() == carried
            assert np.all(origin[: len(carried)] == GIVEN)
            ends = np.flatnonzero(origin == TOOL)
            assert np.all(tokens[ends] == WORD) and np.all(tokens[ends - 1] == PAUSE)
            # Turns are numbered through the answer: a reply is odd, and the next turn follows it.
            numbers = turn + np.cumsum(2 * (origin == TOOL)) - (origin == TOOL)
            assert_array_equal(rollouts.records["turn"][row, :length], numbers)
            turn += 2 * len(ends)
            given = np.flatnonzero(origin == GIVEN)[len(carried) :]
            if after is None:
                assert not len(given)
                continue
            (at,) = given
            assert tokens[at] == instruction and at >= CONTEXT
            behind_replies += origin[at - 1] == TOOL
            # A turn ends where a reply has room behind it, and an instruction and a summary.
            assert at - (origin[at - 1] == TOOL) <= 8 - SUMMARY - 1 - 1
            # Whatever was told before left the segment within its context.
            assert np.all(ends[ends < at - 1] + 1 < CONTEXT) and np.all(ends < at)
            assert 1 <= length - at - 1 <= SUMMARY
            carried = [token for token in tokens[at + 1 :].tolist() if token != stop]
    assert set(lengths) == {1, 2, 3} and behind_replies > 10


def test_what_is_recorded_is_of_the_context_of_drawing():
    for rollouts, rows in answers_of():
        for row in rows:
            own = rollouts.mask[row]
            logp = numpy_actor.NumpyActor._logp(rollouts.tokens[row], 0)
            assert_allclose(rollouts.behaviour_logp[row][own], logp[own], rtol=1e-6)
            assert np.all(rollouts.records["turn"][row, rollouts.length[row] :] == -1)


def replies(rollouts, rows):
    """How many replies were told in each of some rows."""
    return (rollouts.records["origin"][rows] == TOOL).sum(axis=1)


def test_replies_are_limited_and_counted_over_all_segments():
    most, spread = 0, 0
    for rollouts, rows in answers_of(limit=2):
        told = replies(rollouts, rows)
        most, spread = max(most, told.sum()), spread + (np.sum(told > 0) > 1)
    assert most == 2 and spread > 3
    for found in collected(limit=2):
        told = found.metrics
        assert told["tool_tokens"] == np.sum(found.batch.rollouts.records["origin"] == TOOL)
        assert told["answers"] == 72 and told["segments"] == len(found.batch)


def test_an_answer_that_used_up_its_turns_is_cut():
    used = 0
    for rollouts, rows in answers_of(limit=1):
        last = rows[-1]
        length = rollouts.length[last]
        pausing = rollouts.tokens[last, length - 1] == PAUSE and rollouts.mask[last, length - 1]
        if replies(rollouts, rows).sum() == 1 and pausing:
            assert rollouts.truncated[rows].all()
            used += 1
    assert used > 3


def test_an_environment_judges_an_answer_as_a_whole():
    apart = 0
    for found in collected(Counting(judges=True)):
        rollouts = found.batch.rollouts
        for number in np.unique(rollouts.records["trace"]):
            rows = np.flatnonzero(rollouts.records["trace"] == number)
            paid = rollouts.records["process_reward"][rows].sum(axis=1) / 0.25
            outcome, reward = rollouts.outcome[rows], rollouts.reward[rows]
            assert np.all(outcome == float(paid.sum() >= 2))
            assert_allclose(reward, 0.25 * paid.sum() if paid.sum() else 0.0)
            apart += paid.sum() >= 2 and paid.max() == 1
    # Right by replies of several segments: the episode went on.
    assert apart > 3


def test_a_reply_is_shortened_to_what_leaves_room_for_a_summary():
    class Talking(Counting):
        def reply(self, state, text):
            told = super().reply(state, text)
            return replace(told, text="dddddd") if told.text else told

    # Three tokens, behind at most three: with an instruction and a summary they are beyond eight.
    shortened = 0
    for found in collected(Talking(), context=4):
        rollouts = found.batch.rollouts
        shortened += found.metrics.get("cut_replies", 0)
        assert np.all(rollouts.length <= 8)
        for number in np.unique(rollouts.records["trace"]):
            for row in np.flatnonzero(rollouts.records["trace"] == number)[:-1]:
                given = rollouts.records["origin"][row] == GIVEN
                told = rollouts.records["origin"][row] == TOOL
                assert given.any() and told.sum() <= 8 - 1 - SUMMARY
    assert shortened > 10


class Losing(Counting):
    """Whose second replies are lost, with which an answer is over."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return Reply(state, lost=True, done=True) if told.text and state == 1 else told


def test_a_lost_reply_is_no_verdict_of_all_segments():
    lost = 0
    for found in collected(Losing()):
        rollouts = found.batch.rollouts
        gone = np.array([grade.outcome is None for grade in found.batch.grades])
        assert len(np.unique(rollouts.records["trace"][gone])) == found.metrics["lost_answers"]
        for number in np.unique(rollouts.records["trace"][gone]):
            assert gone[rollouts.records["trace"] == number].all()
        lost += gone.sum()
    assert lost


def sampled(environment, log):
    chain = experience(draw=summarized_turns(environment, **SHORT))
    setting = replace(numpy_actor.setting(chain, prompts=12, samples=8), reply_log=log)
    return chain.collect(numpy_actor.NumpyActor(), chain.init(setting), 3, setting).batch.rollouts


@pytest.mark.parametrize("environment", [Moody, Remembering])
def test_a_step_that_is_drawn_again_is_told_the_same(environment, tmp_path):
    path = tmp_path / "told.jsonl"
    first = sampled(environment(), ReplyLog(path))
    lines = path.read_text().splitlines(keepends=True)
    whole = sampled(environment(), ReplyLog(path))
    assert path.read_text() == "".join(lines)
    # Killed in the middle: of what was not said any more, the state is made anew.
    first_replies = [line for line in lines if '/0", "step"' in line]
    assert 0 < len(first_replies) < len(lines)
    path.write_text("".join(first_replies))
    again = sampled(environment(), ReplyLog(path))
    for name in ("tokens", "length", "turn", "origin", "trace", "process_reward"):
        assert_array_equal(first.get(name), whole.get(name))
    if environment is Remembering:
        # The reward is the number of answers so far, through all segments.
        assert_array_equal(first.records["process_reward"], again.records["process_reward"])
        paid = np.bincount(
            first.records["trace"], (first.records["process_reward"] > 1).sum(axis=1)
        )
        assert np.any(paid > 0)


def test_what_cannot_be_is_refused():
    for changes, message in (
        ({"most": -1}, "most must be at least 0, got -1"),
        ({"limit": 0}, "limit must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=f"summarized_turns: {message}"):
            summarized_turns(**changes)
    with pytest.raises(ValueError, match=r"summarized_turns: context must be above 2.*got 6"):
        collected(context=6, steps=1)
    for message, environment in (
        ("must be given for task 'numbered', which has none", None),
        ("must have one player", repeated_game(PAYOFFS, rounds=2)),
    ):
        chain = experience(draw=summarized_turns(environment))
        with pytest.raises(ValueError, match=f"summarized_turns: .*{message}"):
            chain.init(numpy_actor.setting(chain))


def test_supo_writes_one_text_unless_tools_are_named():
    def draw(**given):
        return recipe("supo", **given).experience.draw[1]

    assert draw().label.startswith("summaries(") and draw().environment is None
    assert draw(tools=None).label.startswith("summarized_turns(")
    named = draw(tools=("calculator",), style="tags", max_turns=3)
    assert "toolbox(calculator" in named.label and named.environment.most == 3


# With our actor: a policy that calls a tool by "+ … =", and reads two words.


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


ASKED = ("tools=None", "instruction=+", "context=5", "summary=2", "reply_tokens=3")


@pytest.fixture(scope="module")
def run(policy):
    config = training_runs.settings(
        policy,
        "unused",
        task="small_environments:answering_sums",
        method="supo",
        response_tokens=14,
        samples_per_prompt=6,
        hyperparameters=ASKED,
    )
    return training_runs.prepared(config)


@pytest.mark.slow
def test_every_token_is_scored_in_the_context_it_was_drawn_in(run):
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    on, shown = rollouts.mask, rollouts.records["origin"] == TOOL
    assert shown.sum() > 4 and np.any(rollouts.records["origin"] == GIVEN)
    assert_array_equal(
        on, (rollouts.records["origin"] == 0) & (np.arange(14) < rollouts.length[:, None])
    )
    scored = run.scorer(state.device)(rollouts, ["logp", "entropy"], "current")
    assert_allclose(rollouts.behaviour_logp[on], scored["logp"][on], atol=FLOAT32)
    assert_allclose(rollouts.entropy[on], scored["entropy"][on], atol=FLOAT32)


def drawn_by_policy(run, draw, **changes):
    state = run.initial_state()
    params, scorer = run.sampler_params(state.device), run.scorer(state.device)
    actor = RunActor(run.start.sampler, params, run.start.tables, 0, scorer)
    requests = [
        SampleRequest(prompt, n, 6, **changes) for n, prompt in enumerate(run.task.train[:4])
    ]
    turn = StepContext(0, jax.random.key(0), run.setting, None)
    return draw.apply(requests, actor, (), turn)[0], actor, turn


@pytest.mark.slow
def test_a_segment_drawn_greedily_is_what_fresh_prompts_would_give(run):
    draw = summarized_turns(Answering(stops=("=",)), 8, 3, 2, "+", 5, 2)
    batch, actor, turn = drawn_by_policy(run, draw, temperature=GREEDY)
    checked = 0
    for row, request in enumerate(batch.requests):
        length = int(batch.rollouts.length[row])
        given = np.append(batch.rollouts.records["origin"][row, :length] != 0, True)
        tokens = batch.rollouts.tokens[row]
        for at in np.flatnonzero(given[:-2] & ~given[1:-1]) + 1:
            end = at + int(np.argmax(given[at:]))
            fresh = actor.draw([replace(request, samples=1, given=tokens[:at].tolist())], turn.key)
            assert_array_equal(fresh.rollouts.tokens[0, at:end], tokens[at:end])
            checked += 1
    assert checked > 10


@pytest.mark.slow  # ten seconds
def test_what_is_never_asked_is_written_as_without_an_environment(run):
    # Text may go on up to the instruction, and there is no turn that ends before.
    lengths = {"most": 2, "instruction": "+", "context": 11, "summary": 2}
    turned = summarized_turns(Counting(stops=()), **lengths)
    one, other = (drawn_by_policy(run, draw)[0] for draw in (turned, summaries(**lengths)))
    assert np.ptp(one.rollouts.records["trace"]) + 1 < len(one)
    for name in ("tokens", "mask", "length", "truncated", "trace", "origin"):
        assert_array_equal(one.rollouts.get(name), other.rollouts.get(name))
    # Programs of other widths add up in another order.
    assert_allclose(one.rollouts.behaviour_logp, other.rollouts.behaviour_logp, atol=FLOAT32)


@pytest.mark.slow
def test_a_turn_that_is_never_summed_up_is_that_of_turns(run):
    world = Answering(stops=("=",))
    one = drawn_by_policy(run, summarized_turns(world, most=0))[0].rollouts
    other = drawn_by_policy(run, turns(world))[0].rollouts
    # The later turns of `turns` have keys of their own.
    first = np.cumsum(other.records["origin"] == TOOL, axis=1) == 0
    assert np.any(other.records["origin"] == TOOL)
    assert_array_equal(np.where(first, one.tokens, 0), np.where(first, other.tokens, 0))


@pytest.mark.slow
def test_evaluations_are_drawn_so(run):
    name, draw = run.experience.draw
    assert name == "summarized_turns" and draw.of_policy and draw.evaluation is None
    assert evaluate_run(run, run.initial_state(), 0).n >= 4


@pytest.mark.slow  # twelve seconds
def test_it_trains_on_calculations_with_a_calculator(tmp_path):
    config = training_runs.settings(
        BASE_MODEL,
        tmp_path / "run",
        task="calculations",
        method="supo",
        hyperparameters=("tools=None", "instruction=;", "context=8", "summary=5"),
        prompts_per_step=32,
        samples_per_prompt=8,
        learning_rate=1e-4,
        steps=2,
        samples_stored=500,
    )
    training_runs.quietly(config)
    lines = [line for line in training_runs.metrics(tmp_path / "run") if "loss" in line]
    told = {
        name: training_runs.values(lines, f"experience/{name}")
        for name in ("segments", "answers", "calls", "tool_tokens")
    }
    assert min(told["segments"]) > max(told["answers"]) and min(told["calls"]) > 0
    assert min(told["tool_tokens"]) > 0
    assert max(training_runs.values(lines, "gradient_norm")) > 0
    for bound in ("max", "min"):
        assert set(training_runs.values(lines, f"ratio/{bound}")) == {1.0}
    files = (tmp_path / "run" / "samples").iterdir()
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert any(TOOL in row["origin"] and GIVEN in row["origin"] for row in rows)
