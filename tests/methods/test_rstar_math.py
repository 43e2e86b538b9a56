"""rStar-Math: searches for correct responses step by step, and imitates the best traces."""

import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose, assert_array_equal
from search_runs import run_of, walked
from trees import two_trees

from rlvr_jax.experience import experience
from rlvr_jax.experience.draws.trees.nodes import path_to
from rlvr_jax.methods.trees.rstar_math import (
    Candidate,
    back_up_sum,
    best_traces,
    rejection_sampling,
    search_steps,
    sibling_pairs,
    step_tree,
)


def searched(**changes):
    draw = step_tree(**{"separator": "x", "candidates": 3, "iterations": 3, **changes})
    return walked(experience(draw=draw, stages=[rejection_sampling()]))


def test_of_a_search_the_right_traces_are_imitated():
    imitated = incorrect = 0
    for found in searched():
        rollouts = found.batch.rollouts
        correct = rollouts.outcome > 0.5
        assert not rollouts.mask.any() and np.all(rollouts.temperature == 1)
        assert not rollouts.records["supervised"][~correct].any()
        assert found.metrics["imitated_answers"] == rollouts.records["supervised"].sum()
        assert found.metrics["solved_prompts"] == len(np.unique(rollouts.group[correct]))
        imitated, incorrect = (
            imitated + rollouts.records["supervised"].sum(),
            incorrect + (~correct).sum(),
        )
        assert max(map(len, found.batch.groups)) <= 2
    assert imitated > 2 and incorrect > 0


def test_a_search_draws_at_its_temperature_and_trains_at_one():
    chain = experience(draw=step_tree("x", candidates=2, iterations=2, temperature=0.5))
    assert all(np.all(found.batch.rollouts.temperature == 0.5) for found in walked(chain, 1))


def test_more_descents_solve_no_fewer_prompts():
    few, many = (
        sum(found.metrics["solved_prompts"] for found in searched(iterations=n)) for n in (1, 24)
    )
    assert 0 < few < many


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"candidates": 0}, "candidates must be"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"separator": ""}, "separator must be a text"),
    ],
)
def test_a_search_that_cannot_be_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        step_tree(**given)


@pytest.mark.slow
def test_rstar_math_trains_by_its_name(tmp_path):
    given = ("separator=+", "candidates=4", "iterations=6", "depth=3")
    training_runs.quietly(run_of(tmp_path, "rstar_math", *given))
    steps = training_runs.metrics(tmp_path / "run")
    assert sum(training_runs.values(steps, "experience/imitated_answers")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


def test_a_sum_is_backed_up_along_its_path_alone():
    nodes = two_trees()
    for leaf, reward in ((5, 1.0), (4, -1.0), (5, 0.5)):
        nodes = back_up_sum(nodes, path_to(nodes, leaf), reward)
    assert_allclose(nodes.value, [0.5, 0, 0, 0.5, -1, 1.5, 0])
    assert_array_equal(nodes.visits, [3, 0, 0, 3, 1, 2, 0])


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
    correct = [found.states[node] for node in np.flatnonzero(found.outcome > 0)]
    assert correct and all(sum(state) == 5 for state in correct)
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
