"""GHPO: who is asked again, and what stays."""

import numpy as np
import pytest

from rlvr_jax.experience import all_incorrect
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe

FRACTIONS = (0.25, 0.5, 0.75)


class RightAt(numpy_actor.NumpyActor):
    """Every response is right once enough of the solution is shown: prompt n from the n-th view."""

    def grade(self, batch):
        labels = ["plain", *(view.label for view in recipe("ghpo").experience.views)]
        batch = super().grade(batch)
        correct = [
            labels.index(request.view.label) >= request.number % 6 for request in batch.requests
        ]
        grades = [
            type(grade)(float(found), info=grade.info)
            for grade, found in zip(batch.grades, correct, strict=True)
        ]
        outcome = np.array(correct, np.float32)
        batch = batch.with_rollouts(outcome=outcome, reward=outcome)
        return type(batch)(batch.rollouts, batch.requests, grades, batch.tokenizer)


def test_a_group_keeps_the_first_hint_that_helps():
    """Also where another group of the batch needs a longer one, and where none helps."""
    chain = recipe("ghpo").experience
    ((collected, _, _),) = numpy_actor.walk(
        chain, RightAt(), steps=1, own=numpy_actor.setting(chain, prompts=12)
    )
    labels = ["plain", *(view.label for view in chain.views)]
    shown = {
        request.number: labels.index(request.view.label) for request in collected.batch.requests
    }
    assert shown == {number: min(number % 6, len(FRACTIONS)) for number in range(12)}
    incorrect = all_incorrect(collected.batch.outcomes())
    numbers = np.array(
        [request.number for request in collected.batch.requests_of(np.ones(12, bool))]
    )
    np.testing.assert_array_equal(incorrect, numbers % 6 > len(FRACTIONS))
    assert len(collected.seen) == 1 + len(FRACTIONS)
    found = collected.metrics
    told = [found[name] for name in ("redrawn_fraction", "redraw_2/redrawn_fraction")]
    assert told == [10 / 12, 8 / 12] and found["redraw_3/redrawn_fraction"] == 6 / 12


def test_format_counts_for_the_reward_and_not_for_the_test():
    chain = recipe("ghpo").experience
    for collected, _, _ in numpy_actor.walk(chain):
        batch = collected.batch
        ended = np.array([grade.info["ended"] for grade in batch.grades])
        np.testing.assert_array_equal(batch.rollouts.reward, batch.rollouts.outcome + 0.5 * ended)


def test_a_task_with_another_number_of_rewards_is_refused():
    chain = recipe("ghpo", weights=(1.0,)).experience
    with pytest.raises(
        ValueError, match=r"shape\(weighted\(weights=\(1,\)\)\): must weigh the 2 rewards of task"
    ):
        chain.init(numpy_actor.setting(chain))
