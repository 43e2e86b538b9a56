"""ASearcher leaves groups out in which nothing was right."""

import numpy_actor

from rlvr_jax.methods import recipe


def test_groups_without_a_right_answer_teach_nothing_and_others_do():
    chain, seen = recipe("asearcher").experience, set()
    for found, _, _ in numpy_actor.walk(chain, steps=6):
        batch = found.batch
        assert len(batch.groups) == 4
        for rows, outcome in zip(batch.groups, batch.outcomes(), strict=True):
            right = bool(outcome.max() > 0)
            assert batch.rollouts.mask[rows].any() == right
            seen.add((right, bool(outcome.min() == outcome.max())))
    # Among those that teach are groups in which all were right: only their advantages are 0.
    assert {(False, True), (True, False)} <= seen
