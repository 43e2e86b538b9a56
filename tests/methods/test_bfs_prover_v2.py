"""BFS-Prover-V2: searches proofs best first, and imitates the tactics of the shortest ones."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal
from search_runs import run_of, walked
from small_environments import Counters, Ending

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.experience.reply_log import ReplyLog
from rlvr_jax.methods.trees.bfs_prover_v2 import (
    ERROR,
    PROVED,
    prove,
    prove_statements,
    tactic_filter,
)
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
            if rollouts.records["supervised"][rows].any():
                assert outcome == {1.0} and rollouts.records["supervised"][rows].all()
                # The last tactic of a proof ends it, those before it do not; there is room for 4.
                ends = sum(batch.responses[row].text.endswith("5") for row in rows)
                assert ends == 1 or (ends == 0 and len(rows) == 4)
                states = {batch.requests[row].view.label for row in rows}
                assert len(states) == len(rows)
            unproved += outcome == {0.0}
        trained += rollouts.records["supervised"].sum()
        assert found.metrics["trained_steps"] == rollouts.records["supervised"].sum()
        assert found.metrics["proved_statements"] == sum(
            rollouts.outcome[rows[0]] for rows in batch.groups
        )
    assert trained > 4 and unproved > 0


def test_steps_outside_the_quantiles_are_not_imitated():
    for every, some in zip(proved(), proved(low=0.25, high=0.75), strict=True):
        assert every.metrics["proof_steps"] == some.metrics["proof_steps"]
        if every.metrics["proof_steps"] > 2:
            assert 0 < some.metrics["trained_steps"] < every.metrics["trained_steps"]


class Once(Ending):
    """Accepts a text in a state every other time."""

    asked = frozenset()

    def reply(self, state, text):
        reply, again = super().reply(state, text), (state, text) in self.asked
        type(self).asked ^= {(state, text)}
        return replace(reply, outcome=reply.outcome * (not again))


def test_a_proof_that_fails_in_a_new_episode_is_not_trained():
    (found,) = proved(Once(), steps=1)
    assert found.metrics["refused_proofs"] > 0 == found.metrics["proved_statements"]
    assert not found.batch.rollouts.records["supervised"].any()
    assert all(each.metrics["refused_proofs"] == 0 for each in proved())


class Alike(Ending):
    """All statements lead to one state."""

    def reply(self, state, text):
        return replace(super().reply("one", text), text="one")


def test_a_step_of_several_proofs_is_trained_once():
    how = {"tactics": 8, "expansions": 6, "low": 0.0, "high": 1.0}
    chain = experience(draw=prove_statements(Alike(), **how))
    own = replace(numpy_actor.setting(chain), response_tokens=1)
    for found, _, _ in numpy_actor.walk(chain, NumpyActor(response_tokens=1), steps=4, own=own):
        batch = found.batch
        trained = np.flatnonzero(batch.rollouts.records["supervised"])
        steps = [(batch.requests[row].view.label, batch.responses[row].text) for row in trained]
        assert len(set(steps)) == len(steps)


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
    assert not found.batch.rollouts.records["supervised"].any()
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
    def sampled(log):
        draw = prove_statements(Moody(), tactics=4, expansions=6, low=0.0, high=1.0)
        chain = experience(draw=draw)
        own = replace(numpy_actor.setting(chain), reply_log=log)
        return chain.collect(numpy_actor.NumpyActor(), chain.init(own), 0, own).batch

    path = tmp_path / "told.jsonl"
    first = sampled(ReplyLog(path))
    lines = path.read_text().splitlines(keepends=True)
    again, other = sampled(ReplyLog(path)), sampled(ReplyLog())
    assert again.requests == first.requests != other.requests
    np.testing.assert_array_equal(again.rollouts.tokens, first.rollouts.tokens)
    # Killed in the middle: what was said is said again, what was not is asked from its state.
    path.write_text("".join(lines[: len(lines) // 2]))
    sampled(ReplyLog(path))
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


@pytest.mark.thorough
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
        # The separator, which states end with, is shown once.
        assert equals == ["="]
        # Whatever state it is, what is left leads to the sum.
        assert int(at) + int(left) == prompt.answer
        if rollouts.records["supervised"][row]:
            reply = Counters().reply((int(at), prompt.answer), batch.responses[row].text)
            assert reply.outcome == 1 or not reply.done


def searched_tactics(table, steps, number=4, alpha=0.0, expansions=20, **options):
    """A search in a table: tactics of a state with their mean log-probs, and where they lead."""
    asked, run = [], []

    def propose(state, count):
        asked.append(state)
        return [(tactic, 2 * logp, 2) for tactic, logp in table.get(state, [])][:count]

    def step(state, tactic):
        run.append((state, tactic))
        return steps.get((state, tactic), f"{state}{tactic}")

    return prove("", propose, step, number, alpha, expansions, **options), asked, run


@pytest.mark.parametrize(("alpha", "second"), [(0, "B"), (1, "A1"), (2, "A1")])
def test_the_order_of_expansion_depends_on_alpha(alpha, second):
    table = {"": [("A", -0.2), ("B", -0.5)], "A": [("1", -0.6)]}
    found, asked, _ = searched_tactics(table, {}, alpha=alpha)
    assert asked[:3] == ["", "A", second]
    assert_allclose(found.totals[:4], [0, -0.2, -0.5, -0.8])
    assert found.status == "failed" and found.proof is None


def test_a_proof_ends_the_search_of_its_state():
    table = {
        "": [("a", -0.1), ("b", -0.2)],
        "a": [("a", -0.1)],
        "aa": [("x", -0.1)],
        "b": [("y", -0.9), ("z", -1.0), ("w", -2.0)],
    }
    steps = {("aa", "x"): PROVED, ("b", "y"): ERROR, ("b", "z"): PROVED}
    found, _, run = searched_tactics(table, steps, alpha=0)
    assert found.status == "proved"
    assert found.proof == [("", "b"), ("b", "z")]
    # After a proof the other tactics of the state are not run.
    assert ("b", "w") not in run


def test_of_two_proofs_of_one_tree_the_shorter_is_returned():
    table = {"": [("a", -0.1), ("b", -0.3)], "a": [("c", -0.1)], "ac": [("d", -5.0)]}
    table["b"] = [("e", -6.0)]
    steps = {("ac", "d"): "end", ("b", "e"): "end", ("end", "q"): PROVED}
    table["end"] = [("q", -0.1)]
    found, _, _ = searched_tactics(table, steps)
    assert found.proof == [("", "b"), ("b", "e"), ("end", "q")]


def test_when_all_children_are_errors_the_root_has_failed():
    table = {"": [("a", -1.0), ("b", -2.0)]}
    found, _, _ = searched_tactics(table, {("", "a"): ERROR, ("", "b"): ERROR})
    assert found.status == "failed" and found.expansions == 1


def test_a_cycle_ends_by_the_empty_queue():
    table = {"": [("a", -1.0)], "a": [("b", -1.0)]}
    found, asked, _ = searched_tactics(table, {("a", "b"): ""})
    assert found.status == "open" and asked == ["", "a"]


def test_repeated_and_banned_tactics_are_not_run():
    table = {"": [("a", -1.0), ("a", -1.5), ("sorry", -0.1), ("b", -2.0)]}
    _, _, run = searched_tactics(table, {("", "a"): ERROR, ("", "b"): ERROR}, banned=["sorry"])
    assert run == [("", "a"), ("", "b")]


def test_a_failed_engine_is_no_failed_tactic():
    def step(state, tactic):
        raise TimeoutError("no answer")

    with pytest.raises(TimeoutError, match="no answer"):
        prove("", lambda state, number: [("a", -1.0, 1)], step, 1, 0, 1)


def test_the_middle_of_the_surprises_is_trained():
    kept = tactic_filter(np.arange(1.0, 11))
    assert_array_equal(np.flatnonzero(kept) + 1, np.arange(2, 10))
    assert len(tactic_filter(np.zeros(0))) == 0
    with pytest.raises(ValueError, match=r"low must be at most high 0.2, got 0.8"):
        tactic_filter(np.zeros(3), 0.8, 0.2)


def test_a_policy_that_learns_from_its_proofs_proves_more():
    """States are numbers, the target is reached by steps; a table of counts is the policy."""
    tactics, bound = ("+1", "*2", "-3"), 200

    def situation(state, target):
        return np.sign(target - state), 2 * state <= target, min(abs(target - state), 4)

    def step_to(target):
        def step(state, tactic):
            after = {"+1": state + 1, "*2": 2 * state, "-3": state - 3}[tactic]
            if after == target:
                return PROVED
            return after if 0 <= after <= bound else ERROR

        return step

    def rounds(shuffled):
        random = np.random.default_rng(0)
        counts: dict = {}

        def chances(state, target):
            own = counts.get(situation(state, target), np.zeros(3)) + 0.5
            return own / own.sum()

        def attempt(target):
            def propose(state, number):
                p = chances(state, target)
                sampled = random.choice(3, size=number, p=p)
                return [(tactics[one], float(np.log(p[one])), 1) for one in sampled]

            return prove(1, propose, step_to(target), 2, 1.0, 12)

        every = random.permutation(np.arange(5, 133))
        train, test = every[:64], every[64:]
        fractions = [np.mean([attempt(t).proof is not None for t in test])]
        for _ in range(3):
            steps = []
            for target in train:
                steps += [(s, target, t) for s, t in attempt(target).proof or ()]
            actions = [tactic for _, _, tactic in steps]
            if shuffled:
                actions = random.permutation(actions).tolist()
            for (state, target, _), tactic in zip(steps, actions, strict=True):
                key = situation(state, target)
                counts[key] = counts.get(key, np.zeros(3)) + np.eye(3)[tactics.index(tactic)]
            fractions.append(np.mean([attempt(t).proof is not None for t in test]))
        return fractions

    learned, control = rounds(shuffled=False), rounds(shuffled=True)
    assert learned[-1] > learned[0] + 0.05 and learned[-1] > control[-1]
