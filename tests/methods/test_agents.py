"""Methods for agents: each trains by its name on answers that are written in turns."""

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


def assert_turns_were_learned_from(steps):
    assert max(training_runs.values(steps, "experience/tool_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    assert np.isfinite(training_runs.values(steps, "loss")).all()


def test_empg_credits_turns_by_their_entropy(tmp_path):
    assert_turns_were_learned_from(run_of(tmp_path, "empg"))


def test_aepo_learns_from_answers_of_the_tasks_environment(tmp_path):
    assert_turns_were_learned_from(run_of(tmp_path, "aepo_agentic", "tools=None"))


def test_epo_learns_from_each_step_of_an_episode(tmp_path):
    steps = run_of(tmp_path, "epo", "max_steps=3")
    assert_turns_were_learned_from(steps)
    # A turn is a row, so there are more rows than answers.
    answers, turns = (training_runs.values(steps, f"experience/{n}") for n in ("answers", "turns"))
    assert sum(turns) > sum(answers)
