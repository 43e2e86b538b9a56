"""Dr.SCI: mastered prompts leave the set, the easiest waiting ones enter; rubrics for open
answers.
"""

import itertools

import numpy as np
import pytest
import training_runs
from walks import numbers, walked

from rlvr_jax.methods.curricula.dr_sci import exchanged


def test_mastered_prompts_give_way_to_the_easiest_that_wait():
    active = np.array([True, True, True, False, False, False])
    waiting = ~active
    accuracy = np.array([1.0, 0.5, 0.95, 0, 0, 0])
    difficulty = np.array([0.9, 0.8, 0.7, 0.1, 0.6, 0.6])
    after, queue = exchanged(active, waiting, accuracy, difficulty, 0.9)
    assert after.tolist() == [False, True, False, False, True, True]
    assert queue.tolist() == [False] * 3 + [True, False, False]
    fewer = np.array([False] * 3 + [True, False, False])
    after, queue = exchanged(active, fewer, accuracy, difficulty, 0.9)
    assert after.tolist() == [False, True, True, True, False, False] and not queue.any()


def test_the_set_begins_between_the_bounds_and_trades_what_is_mastered():
    given = {"mastered": 0.6, "pending": 0.3, "discard": 0.9, "rating_samples": 6}
    found = walked("dr_sci", 10, **given)
    first = found[0][2]["mastery_pool"]
    assert (first.difficulty[first.waiting] <= 0.3).all() and first.active.any()
    assert (first.difficulty[first.active] < 0.9).all()
    for (_, _, before), (collected, _, _) in itertools.pairwise(found):
        assert set(numbers(collected)) <= set(np.flatnonzero(before["mastery_pool"].active))
    assert sum(told["mastered_prompts"] for _, told, _ in found) > 0


@pytest.mark.slow
def test_training_on_a_set_that_is_mastered(tmp_path):
    given = ("mastered=0.2", "rating_samples=2", "pending=0.4")
    steps = training_runs.on_brackets(
        "dr_sci", tmp_path, "hinted_brackets:train=16", steps=4, hyperparameters=given
    )
    assert sum(training_runs.values(steps, "experience/mastered_prompts")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
