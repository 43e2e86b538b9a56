"""Answers that are written in turns with an environment."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import training_runs
from small_environments import Counting
from transformers import AutoTokenizer

from rlvr_jax.experience import RunActor, SampleRequest, StepContext, experience, plain, turns
from rlvr_jax.experience.draws.asking import Driver, as_message
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.methods.agents.skill0 import outcome_and_turns
from rlvr_jax.runs.loop import evaluate_run
from rlvr_jax.runs.step import collect
from rlvr_jax.tools import Reply

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer
PAUSE, WORD = 11, 1  # what the actor of numpy reads as "x", and where it writes "c"


def collected(environment=None, actor=None, steps=1, **changes):
    chain = experience(draw=turns(environment or Counting(), **changes))
    return [found for found, _, _ in numpy_actor.walk(chain, actor or NumpyActor(), steps=steps)]


def rows_of(environment=None, **changes):
    found = collected(environment, steps=6, **changes)
    for each in found:
        rollouts = each.batch.rollouts
        for row in range(len(each.batch)):
            yield rollouts, row, int(rollouts.length[row])


def test_replies_stand_behind_pauses_and_are_not_learned_from():
    replies = 0
    for rollouts, row, length in rows_of():
        tokens, told = rollouts.tokens[row, :length], rollouts.records["origin"][row, :length] == 2
        replies += told.sum()
        np.testing.assert_array_equal(rollouts.mask[row, :length], ~told)
        for at in np.flatnonzero(told):
            assert tokens[at] == WORD and tokens[at - 1] == PAUSE
        # A pause that is not the end is answered, unless there was no room.
        for at in np.flatnonzero((tokens == PAUSE) & ~told)[:-1]:
            assert told[at + 1]
        assert (
            not rollouts.mask[row, length:].any()
            and not rollouts.records["origin"][row, length:].any()
        )
    assert replies > 5


def test_turns_are_numbered_and_replies_between_them():
    seen = set()
    for rollouts, row, length in rows_of():
        turn, told = (
            rollouts.records["turn"][row, :length],
            rollouts.records["origin"][row, :length] == 2,
        )
        np.testing.assert_array_equal(turn % 2 == 1, told)
        assert np.all(np.diff(turn) >= 0) and turn[0] == 0
        assert np.all(rollouts.records["turn"][row, length:] == -1)
        seen |= set(turn.tolist())
    assert {0, 1, 2, 3, 4} <= seen


def test_the_policys_tokens_keep_what_was_recorded_when_they_were_drawn():
    for rollouts, row, length in rows_of():
        own = rollouts.mask[row, :length]
        wanted = NumpyActor._logp(rollouts.tokens[row, :length], 0)
        logp = rollouts.behaviour_logp[row, :length]
        np.testing.assert_allclose(logp[own], wanted[own], rtol=1e-6)
        assert not logp[~own].any()


def test_drawn_and_counted_tokens_are_those_on_the_mask():
    for found in collected(steps=6):
        rollouts, metrics = found.batch.rollouts, found.metrics
        assert metrics["sampled_tokens"] == rollouts.mask.sum()
        assert metrics["tool_tokens"] == np.sum(rollouts.records["origin"] == 2)
        assert metrics["answers"] == len(found.batch)
        last = rollouts.records["turn"].max(axis=1)
        assert metrics["turns"] == np.sum(last // 2 + 1)


def test_rows_that_never_pause_are_those_of_plain_sampling():
    ((quiet,), ((loud, _, _),)) = (
        collected(replace(Counting(), stops=("\0" * 9,))),
        numpy_actor.walk(experience(draw=plain()), NumpyActor(), steps=1),
    )
    for name in ("tokens", "mask", "group", "truncated", "outcome"):
        ours, theirs = (each.batch.rollouts.get(name) for each in (quiet, loud))
        np.testing.assert_array_equal(ours, theirs)


def test_the_limit_of_replies_holds():
    for rollouts, row, length in rows_of(limit=1):
        told = (rollouts.records["origin"][row, :length] == 2).astype(int)
        assert np.sum(np.diff(told, prepend=0) == 1) <= 1
        assert rollouts.records["turn"][row].max() <= 2


def test_a_turn_that_uses_up_its_tokens_ends_the_response():
    seen, over = 0, 0
    for rollouts, row, length in rows_of(turn_tokens=3):
        tokens, turn = rollouts.tokens[row, :length], rollouts.records["turn"][row, :length]
        own = [tokens[turn == number] for number in range(0, turn.max() + 1, 2)]
        assert max(map(len, own)) <= 3
        seen += any(len(each) == 3 and each[-1] == PAUSE for each in own[:-1])
        if rollouts.truncated[row] and length < 8 and tokens[-1] != PAUSE:
            over += 1
            assert len(own[-1]) == 3 and turn[-1] == turn.max()
    assert seen and over > 5


class Wide(NumpyActor):
    """Whose tokenizer writes every letter."""

    def encode(self, text):
        return [1 + ord(letter) % (numpy_actor.WORDS - 1) for letter in text]


def test_a_reply_without_room_is_left_out_and_counted():
    found = collected(replace_word("c" * 6), Wide(), steps=4)
    assert sum(each.metrics["cut_replies"] for each in found) > 0
    for each in found:
        rollouts = each.batch.rollouts
        ended = rollouts.truncated & (rollouts.length < 8)
        assert np.all(rollouts.tokens[ended, rollouts.length[ended] - 1] == PAUSE)


def replace_word(word):
    return replace(Counting(), word=word)


def test_a_long_reply_loses_its_middle():
    found = collected(replace_word("abc" + "d" * 30 + "efg"), Wide(), steps=4, reply_tokens=5)
    told = [
        each.batch.rollouts.tokens[row][each.batch.rollouts.records["origin"][row] == 2].tolist()
        for each in found
        for row in range(len(each.batch))
    ]
    encode = Wide().encode
    wanted = [*encode("a"), *encode(" … "), *encode("g")]
    assert wanted in told and all(not x or x[:5] == wanted for x in told)


def test_an_episode_that_is_done_ends_the_response():
    done = 0
    for rollouts, row, length in rows_of(replace(Counting(), done_after=1)):
        if rollouts.records["origin"][row].any():
            done += 1
            assert rollouts.records["origin"][row, length - 1] == 2 and not rollouts.truncated[row]
            assert rollouts.tokens[row, length - 1] == numpy_actor.STOP
            assert rollouts.tokens[row, length - 2] == PAUSE
    assert done > 3


def test_an_environment_that_judges_gives_the_grades():
    found = collected(replace(Counting(), judges=True), steps=6)
    for each in found:
        rollouts = each.batch.rollouts
        replies = np.sum(rollouts.records["process_reward"], axis=1) / 0.25
        wanted = (replies >= 2).astype(np.float32)
        np.testing.assert_array_equal(rollouts.outcome, wanted)
        np.testing.assert_allclose(rollouts.reward, np.where(replies > 0, 0.25 * replies, wanted))
    assert 0 < np.mean([each.batch.rollouts.outcome.mean() for each in found]) < 1


def test_turns_may_cost_what_the_environment_counts():
    found, charged = collected(Counting(judges=True), costs={"answered": 0.1}, steps=6), 0
    for each in found:
        rollouts = each.batch.rollouts
        replies = np.sum((rollouts.records["origin"] == 2) & (rollouts.tokens == WORD), axis=1)
        charges = -rollouts.records["process_reward"].sum(axis=1) / 0.1
        # A reply that did not fit was counted, too.
        assert np.all(charges > replies - 0.5) and np.all(charges < replies + 1.5)
        np.testing.assert_array_equal(rollouts.reward, rollouts.outcome)
        own = np.asarray(outcome_and_turns()(rollouts))
        np.testing.assert_allclose(own, rollouts.outcome - 0.1 * np.round(charges), atol=1e-6)
        charged += int(np.sum(charges > 0.5))
    assert charged > 5
    with pytest.raises(ValueError, match="turns: answered of costs must be at least 0, got -1"):
        turns(Counting(), costs={"answered": -1})


class Unpaid(Counting):
    """Whose replies are worth nothing, and say so."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return told if told.text is None else replace(told, reward=0.0)


def test_rewards_that_come_to_nothing_are_rewards():
    found = collected(Unpaid(judges=True), steps=6)
    outcome, reward = (
        np.concatenate([each.batch.rollouts.get(name) for each in found])
        for name in ("outcome", "reward")
    )
    assert outcome.any() and not reward.any()


def test_rewards_stand_at_the_ends_of_turns():
    for rollouts, row, length in rows_of():
        told = np.flatnonzero(rollouts.records["origin"][row, :length] == 2)
        paid = np.flatnonzero(rollouts.records["process_reward"][row])
        assert set(told - 1) <= set(paid)
        assert np.all(rollouts.tokens[row, paid] == PAUSE)


class Losing(Counting):
    """Whose replies are lost."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return told if told.text is None else Reply(state, lost=True, done=True)


def test_a_lost_reply_is_no_verdict():
    (found,) = collected(Losing())
    lost = np.array([grade.outcome is None for grade in found.batch.grades])
    assert lost.sum() == found.metrics["lost_answers"] > 0 and not lost.all()


class Hanging(Counting):
    """Who never answers a pause."""

    def reply(self, state, text):
        told = super().reply(state, text)
        if told.text is not None:
            threading.Event().wait(30)
        return told


def test_an_environment_that_hangs_loses_the_answer_and_not_the_run():
    (found,) = collected(Hanging(), seconds=1.0)
    lost = np.array([grade.outcome is None for grade in found.batch.grades])
    assert lost.sum() == found.metrics["lost_answers"] == found.metrics["late_replies"] > 0
    assert not lost.all()
    with pytest.raises(ValueError, match="turns: seconds must be positive, got 0"):
        turns(Counting(), seconds=0)


def test_a_task_without_an_environment_is_refused_when_a_run_begins():
    chain = experience(draw=turns())
    with pytest.raises(ValueError, match="must be given for task 'numbered', which has none"):
        chain.init(numpy_actor.setting(chain))
    own = replace(numbered_task(), environment=Counting())
    chain.init(numpy_actor.setting(chain, own))


@pytest.mark.parametrize("name", ["limit", "reply_tokens", "turn_tokens"])
def test_numbers_that_are_no_counts_are_refused(name):
    with pytest.raises(ValueError, match=f"turns: {name} must be at least 1, got 0"):
        turns(Counting(), **{name: 0})


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_TOOLS = (
    "{% for m in messages %}{% if m['role'] not in ('user', 'assistant') %}"
    "{{ raise_exception('only users and assistants') }}{% endif %}{% endfor %}" + CHATML
)


def speaker(tmp_path, template):
    policy = training_runs.write_policy(tmp_path / "policy")
    found = AutoTokenizer.from_pretrained(policy)
    found.chat_template = template
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("template", "role", "end", "wanted"),
    [
        (CHATML, "tool", "<|im_end|>", "\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n"),
        # A policy that has paused has not ended its message.
        (CHATML, "tool", "", "<|im_end|>\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n"),
        (
            NO_TOOLS,
            "tool",
            "<|im_end|>",
            "\n<|im_start|>user\n42<|im_end|>\n<|im_start|>assistant\n",
        ),
        (None, "tool", "<eos>", "\n42\n"),
    ],
)
def test_a_reply_is_the_next_message_by_the_template(tmp_path, template, role, end, wanted):
    assert as_message(speaker(tmp_path, template), role, "42", end) == wanted


@pytest.mark.thorough
def test_special_tokens_in_a_reply_are_words(tmp_path):
    injected = as_message(speaker(tmp_path, CHATML), "tool", "4<eos>\n<pad>5", "<|im_end|>")
    assert injected == "\n<|im_start|>tool\n4< eos>\n< pad>5<|im_end|>\n<|im_start|>assistant\n"
    assert as_message(speaker(tmp_path / "bare", None), "tool", "4<eos>", "") == "\n4<eos>\n"


@pytest.mark.thorough
@pytest.mark.parametrize(("template", "wanted"), [(CHATML, "4< eos> 5"), (None, "4<eos> 5")])
def test_special_tokens_in_a_reply_that_goes_on_are_words_too(tmp_path, template, wanted):
    tokenizer = speaker(tmp_path, template)
    setting = numpy_actor.setting(experience(draw=turns(Counting())))
    turn = StepContext(0, jax.random.key(0), setting, lambda _: [])
    driver = Driver(SimpleNamespace(encode=list), Counting(), turn, 1, 99, {}, threads=None)
    told = driver.tokens_of(Reply(None, "4<eos> 5"), tokenizer, True, 0)
    assert "".join(told) == wanted


def test_a_template_that_drops_replies_is_refused(tmp_path):
    dropping = "{% for m in messages if m['role'] == 'assistant' %}{{ m['content'] }}{% endfor %}"
    with pytest.raises(ValueError, match="chat template must write a message after one"):
        as_message(speaker(tmp_path, dropping), "tool", "42", "")


# With our actor: a policy that calls a tool by "+ … =", and reads two words.


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    policy = training_runs.write_policy(tmp_path_factory.mktemp("policy"))
    method = "small_environments:in_turns"
    config = training_runs.settings(policy, "unused", method=method, response_tokens=10)
    return training_runs.prepared(config)


@pytest.mark.thorough
def test_every_turn_is_scored_in_the_context_it_was_drawn_in(run):
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    rollouts, on = batch.rollouts, batch.rollouts.mask
    assert np.sum(rollouts.records["origin"] == 2) > 4
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    np.testing.assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)


@pytest.mark.slow
def test_a_turn_drawn_greedily_is_what_a_fresh_prompt_would_give(run):
    state, own = run.initial_state(), run.start.sampler
    params = run.sampler_params(state.device)
    actor = RunActor(own, params, run.start.tables, 0, run.scorer(state.device))
    prompts = [
        SampleRequest(prompt, n, 4, temperature=1e-6) for n, prompt in enumerate(run.task.train[:4])
    ]
    turn = StepContext(0, jax.random.key(0), run.setting, None)
    batch, _, _ = run.experience.draw[1].apply(prompts, actor, (), turn)
    checked = 0
    for row, request in enumerate(batch.requests):
        length = int(batch.rollouts.length[row])
        told = np.append(batch.rollouts.records["origin"][row, :length] == 2, True)
        tokens = batch.rollouts.tokens[row]
        for at in np.flatnonzero(told[:-2] & ~told[1:-1]) + 1:
            end = at + int(np.argmax(told[at:]))
            fresh = actor.draw([replace(request, samples=1, given=tokens[:at].tolist())], turn.key)
            np.testing.assert_array_equal(fresh.rollouts.tokens[0, at:end], tokens[at:end])
            checked += 1
    assert checked


@pytest.mark.thorough
def test_evaluations_are_drawn_in_turns_too(run):
    found = evaluate_run(run, run.initial_state(), 0)
    assert found.n >= 4


@pytest.mark.slow
def test_it_trains_and_its_part_acts(run, tmp_path):
    training_runs.quietly(replace(run.config, run_dir=tmp_path / "run", steps=2))
    lines = [line for line in training_runs.metrics(tmp_path / "run") if "loss" in line]
    assert len(lines) == 2
    for line in lines:
        assert np.isfinite(line["loss"]) and line["experience/tool_tokens"] > 0
        assert line["experience/turns"] > line["experience/answers"]
        assert line["trained_tokens"] == line["sampled_tokens"]
        assert line["ratio/max"] == line["ratio/min"] == 1
