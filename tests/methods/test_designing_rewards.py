"""Clip and Delta: process rewards that do not grow with the number of steps."""

import numpy as np
import pytest
from golden_vectors import array
from step_rewards import rollouts

from rlvr_jax.methods.credit.designing_rewards import clip_and_delta, final_scores


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
