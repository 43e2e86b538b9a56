"""ADCL and EGSR: a curriculum that is sorted again on the way, and solutions in the policy's
words.
"""

import numpy as np
import pytest
import training_runs
from walks import numbers, walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.guidance.adcl_egsr import failure_sources


def test_right_guided_rows_take_the_first_places_of_failed_groups():
    outcome = np.array([[0, 0, 0, 0], [0, 1, 0, 0.0]])
    source = failure_sources(outcome, np.array([[0, 1, 1, 1], [1, 1, 1, 1.0]]), 2)
    assert source.tolist() == [[1, 2, -1, -1], [-1, -1, -1, -1]]


def test_chunks_are_trained_in_order_and_rated_just_before():
    found = walked("adcl_egsr", 8, chunks=3, rating_samples=8)
    orders = [state["chunks_by_difficulty"].order for _, _, state in found]
    rated = [told["rated_prompts"] for _, told, _ in found]
    # 12 prompts in 3 chunks of 4, which is a step each.
    assert rated == [12] + [4] * 7
    difficulty = found[0][2]["chunks_by_difficulty"].difficulty[orders[0]]
    assert (np.diff(difficulty) >= 0).all() and difficulty[0] < difficulty[-1]
    for step, (collected, told, _) in enumerate(found[1:]):
        chunk = step % 3
        assert told["chunk"] == chunk
        assert sorted(numbers(collected)) == sorted(orders[0][4 * chunk : 4 * chunk + 4])
        section = orders[step][4 * chunk : 4 * chunk + 4]
        assert numbers(collected) == section.tolist()
        assert (np.diff(found[step][2]["chunks_by_difficulty"].difficulty[section]) >= 0).all()


def test_failed_rows_give_way_to_what_was_right_with_help():
    replaced = 0
    for collected, _, _ in walked("adcl_egsr", 6, numpy_actor.NumpyActor(chance=-0.1)):
        rollouts = collected.batch.rollouts
        assert [len(rows) for rows in collected.batch.groups] == [4] * 4
        for rows in collected.batch.groups:
            foreign = rollouts.records["off_policy"][rows]
            assert foreign.sum() <= 2 and (rollouts.outcome[rows][foreign] == 1).all()
            assert not foreign.any() or not rollouts.outcome[rows][~foreign].any()
        there = rollouts.records["off_policy"]
        if there.any():
            assert (rollouts.records["shown_length"][there] > 0).all()
            assert (rollouts.records["shown_tokens"][there] != rollouts.prompt_tokens[there]).any()
        replaced += int(there.sum())
    assert replaced > 0


@pytest.mark.slow
def test_training_on_chunks_with_help_for_failures(tmp_path):
    given = ("chunks=2", "rating_samples=1", "guided_samples=4")
    steps = training_runs.on_brackets("adcl_egsr", tmp_path, steps=3, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/replaced_rows")) > 0
    assert training_runs.values(steps, "experience/rated_prompts")[0] == 64
    assert max(training_runs.values(steps, "gradient_norm")) > 0
