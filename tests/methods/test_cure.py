"""Branches: what they share with their parents, who they are, and where they begin."""

import jax
import numpy as np
import pytest

from rlvr_jax.experience import SampleRequest, ShownPrompt, StepContext, View, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.trees.cure import (
    barred_tokens,
    branch,
    critical_positions,
    critical_token,
    sampled_positions,
)

SAMPLES = 3


def branched(chain=None, steps=3, **sizes):
    chain = chain or experience(stages=[branch(critical_token(top_k=2), samples=SAMPLES)])
    own = numpy_actor.setting(chain, samples=8, **sizes)
    return [found for found, _, _ in numpy_actor.walk(chain, own=own, steps=steps)]


def test_a_group_is_two_rows_and_six_branches_in_their_order():
    for found in branched():
        rollouts, batch = found.batch.rollouts, found.batch
        assert [len(rows) for rows in batch.groups] == [8] * 4
        assert len(found.seen[0]) == 8 and len(found.seen[1]) == 24
        for rows in batch.groups:
            np.testing.assert_array_equal(rollouts.parent[rows[:2]], -1)
            np.testing.assert_array_equal(rollouts.branch_position[rows[:2]], -1)
            np.testing.assert_array_equal(rollouts.parent[rows[2:]], np.repeat(rows[:2], SAMPLES))
            prompts = rollouts.prompt_tokens[rows]
            np.testing.assert_array_equal(prompts, np.broadcast_to(prompts[0], prompts.shape))


def test_a_branch_begins_as_its_parent_and_only_the_rest_is_trained():
    some = 0
    for found in branched():
        rollouts = found.batch.rollouts
        for row in np.flatnonzero(rollouts.parent >= 0):
            parent, place = rollouts.parent[row], rollouts.branch_position[row]
            some += place > 0
            kept = slice(0, place)
            np.testing.assert_array_equal(rollouts.tokens[row, kept], rollouts.tokens[parent, kept])
            assert not rollouts.mask[row, kept].any()
            assert rollouts.mask[row, place : rollouts.length[row]].all()
            assert 0 <= place < rollouts.length[parent]
    assert some > 0


def test_branches_of_one_row_and_of_rows_of_one_prompt_differ():
    chain = experience(
        stages=[branch(lambda batch, turn: (np.zeros(len(batch), int), {}), SAMPLES)]
    )
    for found in branched(chain):
        rollouts = found.batch.rollouts
        for rows in found.batch.groups:
            # Two rows may be one word long; their random numbers differ.
            assert len({float(rollouts.entropy[row, 0]) for row in rows}) == len(rows)


def test_a_row_of_the_whole_budget_can_branch_at_its_last_token():
    def last(batch, turn):
        del turn
        return np.where(batch.rollouts.length == 8, 7, 0), {}

    found = branched(experience(stages=[branch(last, 1)]), steps=6)
    lengths = [one.batch.rollouts.length[one.batch.rollouts.branch_position == 7] for one in found]
    assert len(np.concatenate(lengths)) > 0
    assert np.all(np.concatenate(lengths) == 8)


def test_an_opening_is_not_given_twice():
    opened = View(lambda prompt, task: ShownPrompt(prompt.text, "abc"))

    actor = numpy_actor.NumpyActor()
    chain = experience(stages=[branch(critical_token(top_k=2), samples=1)])
    own = numpy_actor.setting(chain)
    requests = [
        SampleRequest(prompt, number, 2, opened) for number, prompt in enumerate(own.task.train)
    ]
    batch = actor.grade(actor.draw(requests, jax.random.key(0)))
    turn = StepContext(0, jax.random.key(1), own, list)
    joined, _, _ = chain.stages["branch"].apply(batch, actor, (), turn)
    rollouts = joined.rollouts
    assert np.all(rollouts.branch_position[rollouts.parent >= 0] >= 3)
    np.testing.assert_array_equal(
        rollouts.tokens[:, :3], np.tile(actor.encode("abc"), (len(joined), 1))
    )


def test_candidates_are_the_highest_entropies_and_of_equal_ones_the_earlier():
    entropy = np.array([[3.0, 1, 2, 2, 2], [0, 0, 0, 0, 0]])
    where = np.array([[False, True, True, True, True], [False] * 5])
    found = critical_positions(entropy, where, 2)
    np.testing.assert_array_equal(found, [[0, 0, 1, 1, 0], [0] * 5])


def test_a_place_is_drawn_uniformly_among_the_candidates():
    candidates = np.tile([False, True, False, True, True, False], (3000, 1))
    candidates[-1] = False
    places = sampled_positions(candidates, np.random.default_rng(0))
    assert places[-1] == 0
    counts = np.bincount(places[:-1], minlength=6)
    np.testing.assert_array_equal(counts > 0, [0, 1, 0, 1, 1, 0])
    # Six standard deviations of a third of 2999 draws.
    assert np.abs(counts[[1, 3, 4]] - 1000).max() < 6 * np.sqrt(3000 * 2 / 9)


def test_special_tokens_and_short_texts_are_barred():
    words = numpy_actor.Words()
    np.testing.assert_array_equal(np.flatnonzero(barred_tokens(words, 1)), [0, 11])
    np.testing.assert_array_equal(np.flatnonzero(barred_tokens(words, 0)), [0])


def test_cure_branches_and_trains_where_outcomes_differ():
    chain = recipe("cure", samples=1).experience
    for found in branched(chain):
        batch = found.batch
        assert found.metrics["branched_fraction"] > 0
        for rows, outcome in zip(batch.groups, batch.outcomes(), strict=True):
            trained = batch.rollouts.mask[rows].any()
            assert trained == (outcome.min() < outcome.max())


def test_dropped_groups_are_replaced_by_further_ones_with_branches():
    chain = recipe("cure", top_k=2, max_rounds=4).experience
    several = 0
    for found in branched(chain, steps=4):
        rollouts, batch = found.batch.rollouts, found.batch
        several += found.metrics["refill/rounds"] > 1
        for rows, outcome in zip(batch.groups, batch.outcomes(), strict=True):
            assert rollouts.mask[rows].any() == (outcome.min() < outcome.max())
            np.testing.assert_array_equal(rollouts.parent[rows[:2]], -1)
            np.testing.assert_array_equal(rollouts.parent[rows[2:]], np.repeat(rows[:2], SAMPLES))
        assert len(rollouts.group) == 4 * 8
    assert several > 0


def test_a_choice_of_all_positions_passes_none_over():
    for top_k, some in ((2, True), (8, False)):
        chain = experience(stages=[branch(critical_token(top_k), samples=SAMPLES)])
        assert all((x.metrics["passed_over_fraction"] > 0) == some for x in branched(chain))


def test_groups_that_are_no_multiple_are_refused():
    chain = experience(stages=[branch(critical_token(), samples=3)])
    with pytest.raises(
        ValueError, match="must be a multiple of 4, a row and its 3 branches, got 6"
    ):
        chain.initial_samples(6)
