"""CGPO: rewards under constraints that judges check, with three optimizers."""

import numpy as np
import training_runs
from training_runs import values


def judged_by(judge, tmp_path):
    """A run of CGPO whose only judge is one of the tests' own."""
    return training_runs.on_brackets(
        "cgpo",
        tmp_path,
        hyperparameters=("judges=0",),
        judge=f"own_judges:{judge}",
        samples_per_prompt=4,
    )


def test_rewards_are_compared_with_those_of_worked_solutions(tmp_path):
    steps = judged_by("thirds", tmp_path)
    assert max(values(steps, "gradient_norm")) > 0
    assert all(count == 8 for count in values(steps, "experience/traces"))
    assert all(0 < share < 1 for share in values(steps, "info/judge"))


def test_a_judge_that_is_down_accepts_nothing(tmp_path):
    steps = judged_by("broken", tmp_path)
    # Of four rows of a group three were drawn, and one was given.
    traces = np.array(values(steps, "experience/traces"))
    np.testing.assert_array_equal(values(steps, "experience/rows_without_reward"), 3 * traces)
