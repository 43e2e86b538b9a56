"""Short runs on sums with an environment, and what must hold of a run in turns."""

import numpy as np
import training_runs


def run_of(tmp_path, method, *hyperparameters, steps=3, **changes):
    """Metrics of a short run on sums with an environment, from a random policy."""
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        tmp_path / "run",
        **{
            "task": "small_environments:answering_sums",
            "method": method,
            "response_tokens": 10,
            "hyperparameters": hyperparameters,
            "steps": steps,
            **changes,
        },
    )
    training_runs.quietly(config)
    return training_runs.metrics(tmp_path / "run")


def assert_turns_were_learned_from(steps, as_sampled=True):
    """Checks a run of one update a step.

    Args:
      as_sampled: rows are trained in the context in which they were drawn, by the weights that drew
        them.
    """
    assert max(training_runs.values(steps, "experience/tool_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    assert np.isfinite(training_runs.values(steps, "loss")).all()
    for bound in ("max", "min"):
        assert (set(training_runs.values(steps, f"ratio/{bound}")) == {1.0}) == as_sampled
