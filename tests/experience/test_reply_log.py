"""What environments say is kept, and said again when a step is drawn again."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from small_environments import Counting

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.tools import Reply


class Moody(Counting):
    """Says another word each time it is asked, whatever it is asked; its state is what it said."""

    count = itertools.count()
    stops = ("x",)

    def start(self, prompt):
        return (), []

    def reply(self, state, text):
        told = super().reply(len(state), text)
        if told.text is None:
            return Reply(state)
        word = "cdefgh"[next(self.count) % 6]
        return replace(told, state=(*state, text), text=word)


class Dying(Moody):
    """Ends the process when it is asked by a row for the second time."""

    def reply(self, state, text):
        if state:
            raise KeyboardInterrupt
        return super().reply(state, text)


def sampled(environment, log):
    chain = experience(draw=turns(environment))
    setting = replace(numpy_actor.setting(chain), reply_log=log)
    return chain.collect(numpy_actor.NumpyActor(), chain.init(setting), 3, setting).batch.rollouts


def test_a_step_that_is_drawn_again_is_told_the_same(tmp_path):
    path = tmp_path / "replies.jsonl"
    first, again = sampled(Moody(), ReplyLog(path)), sampled(Moody(), ReplyLog(path))
    other = sampled(Moody(), ReplyLog())
    for name in ("tokens", "length", "turn", "process_reward"):
        np.testing.assert_array_equal(first.get(name), again.get(name))
    assert np.any(first.tokens != other.tokens)


def test_a_run_that_dies_in_a_step_goes_on_with_what_it_was_told(tmp_path):
    path = tmp_path / "replies.jsonl"
    with pytest.raises(KeyboardInterrupt):
        sampled(Dying(), ReplyLog(path))
    known = len(path.read_text().splitlines())
    assert known
    found = sampled(Moody(), ReplyLog(path))
    again = sampled(Moody(), ReplyLog(path))
    assert len(path.read_text().splitlines()) > known
    np.testing.assert_array_equal(found.tokens, again.tokens)


class Remembering(Moody):
    """Says how many of its own answers its state holds, which a resumed run has to make anew."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return told if told.text is None else replace(told, reward=float(len(told.state)))


def test_states_are_made_anew_where_only_the_words_are_known(tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    sampled(Remembering(), ReplyLog(whole))
    lines = whole.read_text().splitlines(keepends=True)
    # All second turns and later ones are lost.
    cut.write_text("".join(line for line in lines if '/0", "step"' in line))
    rewards = sampled(Remembering(), ReplyLog(cut)).records["process_reward"]
    assert set(np.unique(rewards)) >= {0.0, 1.0, 2.0}


def test_only_what_a_resumed_run_could_ask_for_is_kept(tmp_path):
    path = tmp_path / "replies.jsonl"
    log = ReplyLog(path)
    log.store(3, {"a": {"text": "x"}})
    log.store(4, {"b": {"text": "y"}})
    log.forget(4)
    assert log.find("a") is None and ReplyLog(path).find("b") == {"text": "y"}
    assert len(path.read_text().splitlines()) == 1
    path.write_text(path.read_text() + '{"key": "c", "ste')  # killed while it wrote
    assert ReplyLog(path).find("c") is None and ReplyLog(path).find("b")
    reader = ReplyLog(path, writes=False)
    reader.store(5, {"d": {"text": "z"}})
    assert ReplyLog(path).find("d") is None
    path.write_text("{}\n")
    with pytest.raises(ValueError, match="must hold replies of environments, got line 1"):
        ReplyLog(path)
