"""Searches over steps and answers that know no model: proofs, reasoning steps, edited prompts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.experience.draws.trees.answers import compared_value, optimism, search_answers
from rlvr_jax.experience.memory import Insights
from rlvr_jax.methods.trees.bfs_prover_v2 import ERROR, PROVED, prove, tactic_filter
from rlvr_jax.methods.trees.rstar_math import (
    Candidate,
    best_traces,
    search_steps,
    sibling_pairs,
)

# Proofs.


def searched(table, steps, number=4, alpha=0.0, expansions=20, **options):
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
    found, asked, _ = searched(table, {}, alpha=alpha)
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
    found, _, run = searched(table, steps, alpha=0)
    assert found.status == "proved"
    assert found.proof == [("", "b"), ("b", "z")]
    # After a proof the other tactics of the state are not run.
    assert ("b", "w") not in run


def test_of_two_proofs_of_one_tree_the_shorter_is_returned():
    table = {"": [("a", -0.1), ("b", -0.3)], "a": [("c", -0.1)], "ac": [("d", -5.0)]}
    table["b"] = [("e", -6.0)]
    steps = {("ac", "d"): "end", ("b", "e"): "end", ("end", "q"): PROVED}
    table["end"] = [("q", -0.1)]
    found, _, _ = searched(table, steps)
    assert found.proof == [("", "b"), ("b", "e"), ("end", "q")]


def test_when_all_children_are_errors_the_root_has_failed():
    table = {"": [("a", -1.0), ("b", -2.0)]}
    found, _, _ = searched(table, {("", "a"): ERROR, ("", "b"): ERROR})
    assert found.status == "failed" and found.expansions == 1


def test_a_cycle_ends_by_the_empty_queue():
    table = {"": [("a", -1.0)], "a": [("b", -1.0)]}
    found, asked, _ = searched(table, {("a", "b"): ""})
    assert found.status == "open" and asked == ["", "a"]


def test_repeated_and_banned_tactics_are_not_run():
    table = {"": [("a", -1.0), ("a", -1.5), ("sorry", -0.1), ("b", -2.0)]}
    _, _, run = searched(table, {("", "a"): ERROR, ("", "b"): ERROR}, banned=["sorry"])
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
                drawn = random.choice(3, size=number, p=p)
                return [(tactics[one], float(np.log(p[one])), 1) for one in drawn]

            return prove(1, propose, step_to(target), 2, 1.0, 12)

        every = random.permutation(np.arange(5, 133))
        train, test = every[:64], every[64:]
        shares = [np.mean([attempt(t).proof is not None for t in test])]
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
            shares.append(np.mean([attempt(t).proof is not None for t in test]))
        return shares

    learned, control = rounds(shuffled=False), rounds(shuffled=True)
    assert learned[-1] > learned[0] + 0.05 and learned[-1] > control[-1]


# Reasoning steps.


def counting():
    """Steps add 1 or 2; 5 is right, more is wrong, 3 after a 2 is a dead end."""

    def expand(state):
        found = []
        for more in (1, 2):
            total = sum(state) + more
            outcome = 1.0 if total == 5 else -1.0 if total > 5 else None
            dead = state[-1:] == (2,) and total == 3
            found.append(Candidate(None if dead else (*state, more), outcome))
        return found

    return expand


def test_a_search_of_steps_finds_right_answers_and_their_values():
    found = search_steps((), counting(), iterations=40, depth=6)
    right = [found.states[node] for node in np.flatnonzero(found.outcome > 0)]
    assert right and all(sum(state) == 5 for state in right)
    nodes, ends = found.nodes, ~np.isnan(found.outcome)
    # All there are: of the ways to 5, and of those to 6 by a 2; each is backed up once.
    assert nodes.visits[0] == ends.sum() > 8
    assert_array_equal(nodes.visits[ends], 1)
    assert nodes.value[0] == found.outcome[ends].sum()
    # What went through the children went through the root.
    below = np.flatnonzero(nodes.parent == 0)
    assert nodes.value[0] == nodes.value[below].sum()
    traces = best_traces(found, 2)
    assert 1 <= len(traces) <= 2
    assert all(found.outcome[path[-1]] == 1 and path[0] == 0 for path in traces)


def test_dead_ends_are_worth_minus_one_themselves_and_are_never_entered_again():
    asked = []

    def expand(state):
        asked.append(state)
        # 0 has failed, 1 has no next step, 2 goes on up to the depth, 3 is wrong.
        if state == (1,):
            return [Candidate(None)]
        dropped = [Candidate(None)] if state else []
        more = [Candidate((*state, 0), failed=True), *(Candidate((*state, n)) for n in (1, 2))]
        return [*dropped, *more, Candidate((*state, 3), -1.0)]

    found = search_steps((), expand, iterations=20, depth=2)
    assert len(asked) == len(set(asked)) and set(asked) == {(), (1,), (2,)}
    value = {state: value for state, value in zip(found.states, found.nodes.value, strict=True)}
    assert value[(0,)] == value[(1,)] == value[(2, 0)] == value[(2, 1)] == value[(2, 2)] == -1
    # Of these nothing is backed up; the two wrong answers are.
    assert value[()] == -2 and value[(2,)] == -1 and value[(2, 3)] == -1
    assert np.sum(~np.isnan(found.outcome)) == 2


def test_a_descent_that_finds_only_ends_is_over():
    def expand(state):
        return [Candidate((*state, n), 1.0 if state else None) for n in range(2)]

    # The third one goes to the first node, the best, and finds that all is known there.
    sizes = [len(search_steps((), expand, number, 3).nodes) for number in (2, 3, 4, 50)]
    assert sizes == [5, 5, 7, 7]


def test_a_models_value_orders_what_was_never_visited():
    def expand(state):
        if len(state) == 2:
            return [Candidate((*state, 0), outcome=1.0, value=0.3)]
        return [Candidate((*state, one), value=0.1 * one) for one in range(3)]

    found = search_steps((), expand, iterations=4, depth=3, value_of_end=True)
    best = best_traces(found, 1)[0]
    assert found.states[best[-1]][:2] == (2, 2)
    assert found.nodes.value[best[-1]] == pytest.approx(0.3 * found.nodes.visits[best[-1]])


def test_pairs_are_of_the_best_solved_and_the_worst_failed_steps():
    quality = np.array([0.9, 0.2, 0.5, -0.8, -0.3, -0.6])
    solved = np.array([True, True, True, False, False, False])
    pairs = sibling_pairs(quality, solved, top=2, margin=1.3)
    # Taken: 0 and 2 against 3 and 5; of the four pairs 2 with 5 has too small a margin.
    assert pairs == [(0, 3, 0.25), (0, 5, 0.25), (2, 3, 0.25)]
    alone = sibling_pairs(quality, np.arange(6) == 0, lonely=4, margin=0.0)
    assert [other for _, other, _ in alone] == [3, 5, 4, 1]
    assert sibling_pairs(quality, np.ones(6, bool)) == []


# Whole answers under edited prompts.


def test_a_search_of_answers_climbs_where_edits_help():
    def write(prompt):
        return min(len(prompt), 6)

    found = search_answers("", write, lambda p, *_: p + "x", lambda answer: answer / 6, 10)
    assert max(found.rewards) == 1.0 and len(found.nodes) == 11
    assert found.rewards[0] == 0.0 and found.nodes.parent[1] == 0
    assert found.nodes.value[1:].min() > 0


def test_a_value_is_by_how_much_an_answer_is_better():
    assert compared_value(1, 0) == 1 and compared_value(0.5, 0.5) == 0.5
    found = optimism(np.array([0.4, 0.4]), np.array([0, 3]), np.array([5, 5]), 1.0)
    assert_allclose(found, 0.4 + np.sqrt(np.log(6) / np.array([1, 4])))


def test_the_worked_example_of_the_memory():
    memory = Insights()
    for number, text in enumerate(("use units", "check signs", "check units")):
        memory, given = memory.add(text)
        assert given == number
    memory = memory.merge([1, 2], "check signs and units")
    assert sorted(memory.texts) == [0, 1]
    with pytest.raises(KeyError, match=r"numbers must be among \[0, 1\], got \[2\]"):
        memory.modify(2, "no")
    assert memory.retrieve("check the signs", 2) == [1]
    memory, given = memory.add("last")
    assert given == 3
    assert sorted(memory.delete(0).texts) == [1, 3]
    assert memory.modify(3, "newest").texts[3] == "newest"
    assert memory.retrieve("units", 5) == [0, 1]
