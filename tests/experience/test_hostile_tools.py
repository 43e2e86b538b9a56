"""Tools and policies that misbehave: an answer in words, a counted outcome, never a lost run."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from small_environments import Counting

from rlvr_jax.experience import branch_turns, experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.methods.agents.supo import summarized_turns
from rlvr_jax.tools import Lost, Tool, ToolError, between, named_toolbox, search, toolbox

# What the actor of numpy reads: "word3 word5 x", where x ends a call.
CALL = ("word", "x")
DRAWS = {
    "turns": turns,
    "branch_turns": lambda world: branch_turns(world, base=1.0, weight=0.0, top=3, window=2),
    "summarized_turns": lambda world: summarized_turns(
        world, instruction="a", context=4, summary=2
    ),
}


def hostile(run, **limits):
    def asked(arguments, state):
        return state, run()

    tool = Tool("f", "Does harm.", {"x": {"type": "string"}}, asked, **limits)
    return toolbox(tool, style=between(*CALL, "f", "", ""), describe=False)


def raises(error):
    def run():
        raise error

    return run


def sampled(draw, world, log=None):
    chain = experience(draw=DRAWS[draw](world))
    own = replace(numpy_actor.setting(chain, prompts=12, samples=6), reply_log=log)
    return chain.collect(numpy_actor.NumpyActor(), chain.init(own), 0, own)


@pytest.mark.thorough
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize(
    ("run", "limits", "count"),
    [
        (raises(ToolError("no")), {}, "tool_errors"),
        (raises(MemoryError()), {}, "tool_errors"),
        (lambda: time.sleep(0.5), {"seconds": 0.01}, "tool_timeouts"),
        (lambda: "y" * 5_000_000, {}, "calls"),
        (lambda: b"\xff\xfe\x00", {}, "calls"),
        (lambda: "\ud800", {}, "calls"),
        (lambda: "x", {}, "calls"),  # the stop sequence itself
        (lambda: "", {}, "calls"),
        (raises(Lost("gone")), {}, "lost_answers"),
    ],
)
def test_a_tool_that_misbehaves_loses_no_batch(draw, run, limits, count):
    found = sampled(draw, hostile(run, **limits))
    rollouts = found.batch.rollouts
    assert found.metrics["answers"] == 72 and found.metrics[count] > 0
    assert not np.any(rollouts.mask & (rollouts.records["origin"] == 2))
    assert np.all(rollouts.length <= 8) and np.isfinite(rollouts.behaviour_logp).all()
    gone = np.array([grade.outcome is None for grade in found.batch.grades])
    assert gone.any() == (count == "lost_answers")


@pytest.mark.parametrize("draw", DRAWS)
def test_a_call_that_is_never_closed_is_answered_and_the_row_ends(draw):
    """A row that ends is told what is wrong, one that is cut is not asked."""
    world = toolbox(
        Tool("f", "Is not reached.", {"x": {}}, lambda arguments, state: (state, "")),
        style=between("word", "\0", "f", "", ""),
        describe=False,
    )
    found = sampled(draw, world)
    assert found.metrics["answers"] == 72 and found.metrics["malformed_calls"] > 0
    assert found.metrics["calls"] == 0 and np.all(found.batch.rollouts.length <= 8)


class Locked(Counting):
    """Whose state nobody can pickle."""

    def start(self, prompt):
        return (0, threading.Lock()), []

    def reply(self, state, text):
        told = super().reply(state[0], text)
        return replace(told, state=(told.state, state[1]))


@pytest.mark.parametrize("draw", DRAWS)
def test_a_state_that_cannot_be_pickled_is_made_anew_by_a_resumed_run(draw, tmp_path):
    path = tmp_path / "told.jsonl"
    first = sampled(draw, Locked(), ReplyLog(path)).batch.rollouts
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))
    again = sampled(draw, Locked(), ReplyLog(path)).batch.rollouts
    assert np.any(first.records["turn"] > 2)
    for name in ("tokens", "turn", "origin", "process_reward"):
        np.testing.assert_array_equal(first.get(name), again.get(name))


def test_two_tools_of_one_name_and_an_empty_corpus_are_refused_before_a_run(tmp_path):
    with pytest.raises(ValueError, match=r"different names, got \['calculator'\] twice"):
        named_toolbox(["calculator", "calculator"])
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    (tmp_path / "folder").mkdir()
    for corpus in (empty, tmp_path / "folder"):
        with pytest.raises(ValueError, match="corpus must have texts, got none"):
            named_toolbox([f"search:{corpus}"])
    with pytest.raises(ValueError, match="corpus must have words, got none in 2 texts"):
        search(["!", "?"])
