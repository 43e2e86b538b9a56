"""Methods that change the reward train end to end, and their parts act."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.runs.step import take_step

# By method: hyperparameters beside the defaults, and curves of which each moves in some step.
CASES = {
    "overlong_shaping": ((), ["reward/overlong"]),
    "length_rewards": ((), ["reward/cosine"]),
    "empo": ((), ["answer_entropy", "majority_share"]),
    "intrinsic_rewards": ((), []),
    "spurious_rewards": ((), []),
}
FAST = {"empo"}
marked = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow, id=name) for name in CASES
]


@pytest.mark.parametrize("name", marked)
def test_training_shows_the_parts_of_the_reward(name, model):
    hyperparameters, curves = CASES[name]
    settings = training_runs.settings(
        model,
        "unused",
        task="reward_tasks:graded_sums",
        method=name,
        hyperparameters=hyperparameters,
        samples_per_prompt=6,
    )
    run = training_runs.prepared(settings)
    state, steps = run.initial_state(), []
    for step in range(2):
        taken = take_step(run, state, step)
        state = taken.state
        steps.append(taken.metrics)
    assert np.isfinite([told["loss"] for told in steps]).all()
    assert any(told["gradient_norm"] > 0 for told in steps)
    assert any(told["verifier_no_verdict"] > 0 for told in steps)
    for curve in curves:
        values = [told.get(f"experience/{curve}", 0.0) for told in steps]
        assert np.any(values), (curve, sorted(steps[0]))
