"""Walks and runs of searches over steps."""

import training_runs

from rlvr_jax.experience.laws import numpy_actor


def walked(chain, steps=4):
    return [found for found, _, _ in numpy_actor.walk(chain, steps=steps)]


def run_of(tmp_path, method, *hyperparameters, **changes):
    policy = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    config = training_runs.settings(
        policy, tmp_path / "run", method=method, hyperparameters=hyperparameters, **changes
    )
    return config
