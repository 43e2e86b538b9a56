"""BFS-Prover-V2: searches proofs best first, and imitates the tactics of the shortest ones."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import training_runs
from search_runs import run_of, walked
from small_environments import Counters, Ending

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.experience.told import Told
from rlvr_jax.methods.trees.bfs_prover_v2 import prove_statements
from rlvr_jax.runs.step import collect
from rlvr_jax.tools import Reply


def proved(environment=None, steps=4, **changes):
    how = {"tactics": 4, "expansions": 6, "low": 0.0, "high": 1.0, **changes}
    return walked(experience(draw=prove_statements(environment or Ending(), **how)), steps)


def test_the_tactics_of_proofs_are_imitated_behind_their_states():
    trained = unproved = 0
    for found in proved():
        batch, rollouts = found.batch, found.batch.rollouts
        assert not rollouts.mask.any() and np.all(rollouts.temperature == 1)
        for rows in batch.groups:
            outcome = set(rollouts.outcome[rows].tolist())
            if rollouts.supervised[rows].any():
                assert outcome == {1.0} and rollouts.supervised[rows].all()
                # The last tactic of a proof ends it, those before it do not; there is room for 4.
                ends = sum(batch.responses[row].text.endswith("5") for row in rows)
                assert ends == 1 or (ends == 0 and len(rows) == 4)
                states = {batch.asks[row].view.label for row in rows}
                assert len(states) == len(rows)
            unproved += outcome == {0.0}
        trained += rollouts.supervised.sum()
        assert found.metrics["trained_steps"] == rollouts.supervised.sum()
        assert found.metrics["proved_statements"] == sum(
            rollouts.outcome[rows[0]] for rows in batch.groups
        )
    assert trained > 4 and unproved > 0


def test_steps_outside_the_quantiles_are_not_imitated():
    for every, some in zip(proved(), proved(low=0.25, high=0.75), strict=True):
        assert every.metrics["proof_steps"] == some.metrics["proof_steps"]
        if every.metrics["proof_steps"] > 2:
            assert 0 < some.metrics["trained_steps"] < every.metrics["trained_steps"]


class Losing(Ending):
    """Whose replies are lost, all of them or each first one."""

    every = True
    asked = frozenset()

    def reply(self, state, text):
        first = (state, text) not in self.asked
        type(self).asked |= {(state, text)}
        return Reply(state, lost=True) if self.every or first else super().reply(state, text)


class Retried(Losing):
    every = False


def test_a_lost_reply_is_no_failed_tactic_and_no_verdict():
    (found,) = proved(Losing(), steps=1)
    assert found.metrics["lost_statements"] == len(found.batch.groups) == 4
    assert all(grade.outcome is None for grade in found.batch.grades)
    assert not found.batch.rollouts.supervised.any()
    # One that is there when it is asked again is as if it had not been lost.
    (again,), (plainly,) = proved(Retried(), steps=1), proved(steps=1)
    assert again.metrics == plainly.metrics and again.metrics["lost_statements"] == 0


class Moody(Ending):
    """Is of another opinion each time it is asked."""

    count = itertools.count()

    def reply(self, state, text):
        told = super().reply(state, text)
        return told if told.done else replace(told, text=f"{told.text} {next(self.count)}")


def test_a_search_that_is_done_again_is_told_the_same(tmp_path):
    def drawn(told):
        draw = prove_statements(Moody(), tactics=4, expansions=6, low=0.0, high=1.0)
        chain = experience(draw=draw)
        own = replace(numpy_actor.setting(chain), told=told)
        return chain.collect(numpy_actor.NumpyActor(), chain.init(own), 0, own).batch

    path = tmp_path / "told.jsonl"
    first = drawn(Told(path))
    lines = path.read_text().splitlines(keepends=True)
    again, other = drawn(Told(path)), drawn(Told())
    assert again.asks == first.asks != other.asks
    np.testing.assert_array_equal(again.rollouts.tokens, first.rollouts.tokens)
    # Killed in the middle: what was said is said again, what was not is asked from its state.
    path.write_text("".join(lines[: len(lines) // 2]))
    drawn(Told(path))
    assert path.read_text().startswith("".join(lines[: len(lines) // 2]))


def test_a_task_without_a_checker_is_refused_when_a_run_begins():
    chain = experience(draw=prove_statements())
    with pytest.raises(ValueError, match="must be given for task 'numbered', which has none"):
        chain.init(numpy_actor.setting(chain))


def test_an_actor_scores_tactics_at_temperature_one():
    asked = []

    class Noting(NumpyActor):
        def score(self, batch, needs, of="current"):
            asked.append(batch.rollouts.temperature)
            return super().score(batch, needs, of)

    chain = experience(draw=prove_statements(Ending(), expansions=2))
    numpy_actor.walk(chain, Noting(), steps=1)
    assert asked and all(np.all(heat == 1) for heat in asked)


BFS = ("expansions=4", "separator= =", "low=0", "high=1")


@pytest.mark.slow
def test_bfs_prover_trains_by_its_name(tmp_path):
    config = run_of(
        tmp_path,
        "bfs_prover_v2",
        *BFS,
        task="small_environments:counted_sums",
        response_tokens=3,
        steps=4,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert sum(training_runs.values(steps, "experience/trained_steps")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    assert max(x for x in training_runs.values(steps, "imitation_loss") if x is not None) > 0


def test_the_policy_reads_states_where_it_writes_tactics(tmp_path):
    config = run_of(
        tmp_path,
        "bfs_prover_v2",
        *BFS,
        task="small_environments:counted_sums",
        response_tokens=3,
    )
    run = training_runs.prepared(config)
    batch = collect(run, run.initial_state(), 0).batch
    rollouts, words = batch.rollouts, batch.tokenizer
    for row, prompt in enumerate(batch.prompts):
        read = words.decode(rollouts.prompt_tokens[row, : rollouts.prompt_length[row]])
        at, _, left, *equals = read.split()
        assert equals == ["=", "="]
        # Whatever state it is, what is left leads to the sum.
        assert int(at) + int(left) == prompt.answer
        if rollouts.supervised[row]:
            reply = Counters().reply((int(at), prompt.answer), batch.responses[row].text)
            assert reply.outcome == 1 or not reply.done
