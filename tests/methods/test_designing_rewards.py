"""Clip and Delta: process rewards that do not grow with the number of steps."""

import numpy as np
import pytest
from golden_vectors import array
from step_rewards import rollouts

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.designing_rewards import clip_and_delta, final_scores
from rlvr_jax.types import replace


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("scores", "differences"),
    [
        ([0.3], [0.0]),
        ([0.3, 0.9], [0.3, 0.0]),
        ([0.3, -0.2, 0.5, 0.9], [0.5, -0.7, 0.5, 0.0]),
    ],
)
def test_the_sum_from_a_step_on_is_its_own_score(scores, differences):
    batch = rollouts([scores], [1.0])
    found = np.asarray(clip_and_delta(clip=False).of(batch, batch.mask))[0]
    np.testing.assert_allclose(found[1 : 2 * len(scores) : 2], differences, atol=1e-15)  # one sum
    assert not found[2 * len(scores) :].any()


def test_a_step_with_a_hole_in_it_ends_at_its_last_token():
    batch = rollouts([[0.5]], [1.0])
    step = np.asarray(batch.records["step"]).copy()
    step[0] = [0, -1, 0, -1, -1]
    reward = array([[0, 9.0, -0.5, 0, 0]], np.float64)
    batch = batch.replace(step=array(step, np.int32), process_reward=reward)
    scores, steps = final_scores(batch, batch.mask)
    assert scores[0, 0] == -0.5 and int(steps.exists.sum()) == 1


def test_scores_of_0_and_1_are_penalized_by_default():
    # Clipped at a half: 0, -1/2, 0; then r_1 - r_2, r_2 and 0.
    batch = rollouts([[1.0, 0.0, 1.0]], [1.0])
    found = np.asarray(clip_and_delta().of(batch, batch.mask))[0]
    assert found[[1, 3, 5]].tolist() == [0.5, -0.5, 0]


def test_a_threshold_that_no_score_is_below_is_refused_before_the_first_step():
    task = replace(numbered_task(), step_range=(0.0, 1.0))
    for own, good in (
        ({"threshold": 0.0}, False),
        ({"threshold": 0, "clip": False}, True),
        ({}, True),
    ):
        chain = recipe("designing_rewards", **own).experience
        setting = numpy_actor.setting(chain, task=task)
        if good:
            chain.init(setting)
            continue
        with pytest.raises(ValueError, match=r"^threshold must be in \(0, 1\], because .* got 0"):
            chain.init(setting)
    chain = recipe("designing_rewards", threshold=0.0).experience
    chain.init(numpy_actor.setting(chain, task=replace(task, step_range=(-1.0, 1.0))))
