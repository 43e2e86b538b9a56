"""Searches over steps that an environment answers, such as those with code in them."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal
from small_environments import PAYOFFS, Answering, Counting
from test_reply_log import Moody

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.methods import recipe
from rlvr_jax.methods.trees.rstar_math import rejection_sampling, step_tree
from rlvr_jax.objectives import GIVEN, TOOL
from rlvr_jax.runs.step import collect
from rlvr_jax.sandbox import Limits
from rlvr_jax.tasks import Grade
from rlvr_jax.tools import Lost, Reply, code_steps, repeated_game

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of at most some nats
GREEDY = 1e-6
PAUSE, WORD = 11, 1  # what the actor of numpy reads where it writes "b" and "c"


def chain_of(environment, **changes):
    how = {"separator": "b", "candidates": 3, "iterations": 4, "depth": 4, **changes}
    return experience(draw=step_tree(**how, environment=environment))


def collected(environment=None, steps=4, reply_log=None, actor=None, **changes):
    chain = chain_of(environment or Counting(), **changes)
    own = replace(numpy_actor.setting(chain, prompts=8), reply_log=reply_log)
    return [found for found, _, _ in numpy_actor.walk(chain, actor, own=own, steps=steps)]


def test_steps_go_on_behind_replies_that_are_given():
    replies = 0
    for found in collected():
        rollouts = found.batch.rollouts
        for row in range(len(found.batch)):
            length = rollouts.length[row]
            tokens, told = (
                rollouts.tokens[row, :length],
                rollouts.records["origin"][row, :length] == TOOL,
            )
            replies += told.sum()
            assert_array_equal(rollouts.mask[row, :length], ~told)
            assert not rollouts.mask[row, length:].any()
            assert np.all(tokens[told] == WORD) and np.all(
                tokens[np.flatnonzero(told) - 1] == PAUSE
            )
            # Every reply stands behind a step, and no step goes on without one.
            assert told.sum() == np.sum(tokens[:-1] == PAUSE)
            assert_array_equal(rollouts.records["turn"][row, :length] % 2 == 1, told)
            own = rollouts.mask[row, :length]
            logp = numpy_actor.NumpyActor._logp(tokens, 0)
            assert_allclose(rollouts.behaviour_logp[row, :length][own], logp[own], rtol=1e-6)
    assert replies > 10


class Failing(Counting):
    """Ends an episode at its second step, which has failed."""

    def reply(self, state, text):
        told = super().reply(state, text)
        return Reply(state, done=True, outcome=0.0) if told.text and state else told


def test_a_step_that_failed_is_an_end_and_no_answer():
    failed = 0
    # With one next step each, a response has no other end; whatever ends by itself is right.
    for found in collected(Failing(), candidates=1, actor=numpy_actor.NumpyActor(chance=1.0)):
        rollouts = found.batch.rollouts
        last = np.maximum(rollouts.length - 1, 0)[:, None]
        # The end behind it is nobody's, and the verifier was not asked.
        over = np.take_along_axis(rollouts.records["origin"], last, axis=1)[:, 0] == TOOL
        assert over.sum() == found.metrics["failed_steps"] and len(over) == 8
        assert found.metrics["solved_prompts"] == np.sum(found.batch.rollouts.outcome[~over])
        for row in np.flatnonzero(over):
            grade = found.batch.grades[row]
            assert grade.outcome == 0 and np.isnan(grade.info["ended"])
            assert rollouts.records["turn"][row].max() == 2
        failed += over.sum()
    assert failed > 0


@dataclass(frozen=True)
class Losing(Counting):
    """Whose replies are lost: all of them, or those to some texts."""

    every: bool = True

    def reply(self, state, text):
        told = super().reply(state, text)
        lost = told.text and (self.every or len(text) % 2)
        return Reply(state, lost=True, done=True) if lost else told


def test_a_lost_step_is_taken_out_of_the_tree():
    some, all_of_them = collected(Losing(every=False)), collected(Losing(), candidates=1)
    assert sum(found.metrics["lost_steps"] for found in some) > 4
    known = [grade.outcome is not None for found in some for grade in found.batch.grades]
    assert np.mean(known) > 0.8
    lost = 0
    for found in all_of_them:
        gone = np.array([grade.outcome is None for grade in found.batch.grades])
        assert gone.sum() == found.metrics["lost_steps"] and len(gone) == 8
        lost += gone.sum()
    assert lost > 4


def test_a_search_that_is_done_again_is_told_the_same(tmp_path):
    path = tmp_path / "told.jsonl"

    def sampled(log):
        return collected(Moody(), steps=1, reply_log=log)[0].batch.rollouts

    first = sampled(ReplyLog(path))
    lines = path.read_text().splitlines(keepends=True)
    again, other = sampled(ReplyLog(path)), sampled(ReplyLog())
    assert path.read_text() == "".join(lines)
    for name in ("tokens", "length", "turn", "origin"):
        assert_array_equal(first.get(name), again.get(name))
    assert first.tokens.shape != other.tokens.shape or np.any(first.tokens != other.tokens)
    # Killed in the middle: what was said is said again, what was not is asked from its state.
    path.write_text("".join(lines[: len(lines) // 2]))
    sampled(ReplyLog(path))
    assert path.read_text().startswith("".join(lines[: len(lines) // 2]))


def test_a_step_that_does_not_end_is_cut():
    cut = 0
    for found in collected(step_tokens=2):
        rollouts = found.batch.rollouts
        for row in range(len(found.batch)):
            own = rollouts.records["turn"][row][rollouts.mask[row]]
            assert np.bincount(own).max(initial=0) <= 2
            cut += rollouts.truncated[row] and rollouts.length[row] < 8
    assert cut > 4


def test_evaluations_are_answered_in_turns():
    draw = chain_of(Counting()).draw[1]
    assert draw.of_policy and draw.evaluation.label == turns(Counting(), 4).label
    assert not experience(draw=step_tree()).draw[1].of_policy


def test_rstar_math_runs_code_where_it_is_asked_to():
    plain, coded = (recipe("rstar_math", code=code).experience.draw[1] for code in (False, True))
    assert plain.environment is None and "separator" not in plain.label
    assert coded.environment == code_steps() and "separator=<end_of_step>," in coded.label


def test_a_game_is_refused():
    chain = chain_of(repeated_game(PAYOFFS, rounds=2))
    with pytest.raises(ValueError, match="step_tree: environment must have one player"):
        chain.init(numpy_actor.setting(chain))


# A policy that writes programs: a script, letter by letter.

ROOM = 160


class Letters(numpy_actor.Words):
    def batch_decode(self, rows, **options):
        del options
        return ["".join(map(chr, row)) for row in rows]


@dataclass(frozen=True)
class Scripted(numpy_actor.NumpyActor):
    """Writes what `script` (text so far, number of the sample) gives, and whether that ends."""

    response_tokens: int = ROOM
    script: object = None
    tokenizer: object = field(default_factory=Letters)

    def encode(self, text):
        return list(map(ord, text))

    def _row(self, request, sample, key):
        written = "".join(map(chr, request.given))
        ids = [*map(ord, self.script(written, request.first_sample + sample)), numpy_actor.STOP]
        row = super()._row(request, sample, key)
        on = np.arange(ROOM) < len(ids)
        row["tokens"][:] = 0
        row["tokens"][: len(ids)] = ids
        logp = np.where(on, -0.5, 0).astype(np.float32)
        entropy = np.zeros_like(logp)
        cut = np.bool_(False)
        return row | dict(length=np.int32(len(ids)), truncated=cut, logp=logp, entropy=entropy)

    def grade(self, batch):
        texts = [text.text for text in batch.responses]
        grades = [Grade(float(text.endswith("so 42"))) for text in texts]
        return batch.graded(grades)


def programs(written, sample):
    """Begins with one of four blocks; behind its output the answer is what was printed."""
    blocks = [
        "<code>\na = 6 * 7<S>\nprint(a)<E>",
        "<code>\n1 / 0<S>\nb = 2<S>",
        "<code>\nwhile True: pass<E>",
        "<code>\nprint('y' * 5_000_000)<E>",
    ]
    if not written:
        return blocks[sample % 4]
    if written.endswith("<S>"):
        rest = [block.removeprefix(written) for block in blocks if block.startswith(written)]
        return rest[0]
    printed = written.rpartition("<O>")[2].partition("</O>")[0]
    return f"so {printed}" if len(printed) < 5 else "so nothing"


def searched(world, **changes):
    how = {"candidates": 4, "iterations": 12, "depth": 4, "reply_tokens": 20, **changes}
    chain = experience(
        draw=step_tree("<S>", environment=world, **how), stages=[rejection_sampling()]
    )
    own = replace(numpy_actor.setting(chain, prompts=2), response_tokens=ROOM)
    return chain.collect(Scripted(script=programs), chain.init(own), 0, own)


def marks(**options):
    limits = Limits(wall_seconds=1.0, cpu_seconds=1.0)
    return code_steps("<S>", "<code>", "<E>", ("\n<O>", "</O>\n"), limits=limits, **options)


@pytest.mark.thorough
def test_programs_are_run_and_what_they_print_is_read():
    found = searched(marks())
    rollouts, told = found.batch.rollouts, found.metrics
    assert found.batch.responses[0].text == ("<code>\na = 6 * 7<S>\nprint(a)<E>\n<O>42</O>\nso 42")
    assert told["solved_prompts"] == 2 and rollouts.records["supervised"][0]
    shown = rollouts.records["origin"][0] == TOOL
    printed = "".join(map(chr, rollouts.tokens[0][shown]))
    assert printed == "\n<O>42</O>\n" and not np.any(rollouts.mask[0] & shown)
    # The loop, the megabytes and the division by zero of each prompt, and what follows the last.
    assert told["failed_steps"] >= 8 and told["tool_errors"] == 6 + told["failed_steps"]
    assert told["lost_steps"] == 0


def test_a_lost_sandbox_is_no_verdict():
    def gone(code):
        raise Lost("gone")

    found = searched(replace(marks(), run=gone))
    assert [grade.outcome for grade in found.batch.grades] == [None, None]
    assert found.metrics["lost_steps"] == 8 and not found.batch.rollouts.records["supervised"].any()


# With our actor: a policy that calls a tool by "=", and reads two words.


def answered_recipe(temperature: float = GREEDY):
    """rStar-Math on steps that `Answering` answers."""
    own = recipe("rstar_math", code=True, separator="+")
    how = {"candidates": 3, "iterations": 4, "depth": 3, "reply_tokens": 4}
    draw = step_tree("+", **how, temperature=temperature, environment=Answering(stops=("=",)))
    return replace(own, experience=experience(draw=draw, stages=[rejection_sampling()]))


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    policy = training_runs.write_policy(tmp_path_factory.mktemp("policy"))
    return training_runs.settings(
        policy, "unused", method="test_rstar_math_code:answered_recipe", response_tokens=14
    )


@pytest.mark.thorough
def test_steps_drawn_greedily_are_what_a_fresh_pass_would_give(settings):
    run = training_runs.prepared(settings)
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    own = (np.arange(14) < rollouts.length[:, None]) & (rollouts.records["origin"] == 0)
    assert np.any(rollouts.records["origin"] == TOOL) and not np.any(
        rollouts.records["origin"] == GIVEN
    )
    scored = run.scorer(state.device)(rollouts.replace(mask=own), ["max_id"], "current")["max_id"]
    assert_array_equal(rollouts.tokens[own], scored[own])


@pytest.mark.slow  # ten seconds
def test_every_token_is_scored_in_the_context_it_was_drawn_in(settings):
    run = training_runs.prepared(replace(settings, hyperparameters=("temperature=1",)))
    state, replies = run.initial_state(), 0
    # Few of the right answers of a random policy have a call.
    for step in range(6):
        rollouts = collect(run, state, step).batch.rollouts
        own = (np.arange(14) < rollouts.length[:, None]) & (rollouts.records["origin"] == 0)
        replies += np.sum(rollouts.records["origin"] == TOOL)
        scored = run.scorer(state.device)(rollouts.replace(mask=own), ["logp"], "current")["logp"]
        assert_allclose(rollouts.behaviour_logp[own], scored[own], atol=FLOAT32)
    assert replies > 1
