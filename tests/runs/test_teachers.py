"""Teachers: whose whole distribution an objective compares the policy with."""

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax import methods
from rlvr_jax.runs.composition import compose
from rlvr_jax.runs.run import make_run
from rlvr_jax.runs.step import take_step
from rlvr_jax.types import replace

DECAY = 0.9


def run_with(model, teacher):
    """A run whose loss has the divergence from a teacher, one update a step."""
    config = training_runs.settings(model, "unused", method="mdpo", minibatches=1, epochs=1)
    task = training_runs.sums()
    recipe = replace(methods.recipe("mdpo", updates_per_step=1), teacher=teacher)
    return make_run(config, task, compose(config, task, recipe), config.model)


def divergences(run, steps=2):
    state, found = run.initial_state(), []
    for step in range(steps):
        taken = take_step(run, state, step)
        state = taken.state
        found.append(taken.metrics["mirror_kl"])
    return found, state


def test_the_policy_that_sampled_is_no_distance_away(model):
    found, _ = divergences(run_with(model, None))
    np.testing.assert_allclose(found, 0, atol=1e-6)


def test_the_start_is_left_behind(model):
    found, _ = divergences(run_with(model, "start"))
    assert abs(found[0]) < 1e-6 < found[1]


def test_an_average_follows_the_weights(model):
    run = run_with(model, f"average:{DECAY}")
    start = jax.device_get(run.initial_state().params)
    taken = take_step(run, run.initial_state(), 0)
    now, average = jax.device_get((taken.state.params, taken.state.teacher))
    for before, after, mean in zip(*map(jax.tree.leaves, (start, now, average)), strict=True):
        np.testing.assert_allclose(mean, DECAY * before + (1 - DECAY) * after, atol=1e-6)
    found, _ = divergences(run)
    assert abs(found[0]) < 1e-6 < found[1]


def test_another_folder_is_a_teacher_from_the_first_step_on(model, tmp_path):
    other = training_runs.write_policy(tmp_path, seed=1)
    found, _ = divergences(run_with(model, str(other)), steps=1)
    assert found[0] > 1e-4


def test_an_average_without_a_decay_is_refused(model):
    with pytest.raises(ValueError, match=r"teacher must be average:<decay in \[0, 1\)>, got 'av"):
        run_with(model, "average:2")
