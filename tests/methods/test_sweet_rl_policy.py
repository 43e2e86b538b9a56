"""SWEET-RL, the second step: a policy learns which turns a critic that sees the answer prefers."""

import numpy as np
import pytest
import training_runs
from turn_runs import run_of

from rlvr_jax.runs.step import collect


@pytest.mark.slow
def test_sweet_rls_policy_learns_from_turns_that_its_critic_prefers(tmp_path):
    run_of(tmp_path / "critic", "sweet_rl", steps=4, learning_rate=3e-3)
    critic = tmp_path / "critic" / "run" / "policy"
    given = (f"critic={critic}", "candidates=4", "pairs=2")
    steps = run_of(tmp_path, "sweet_rl_policy", *given)
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    assert min(training_runs.values(steps, "experience/turn_gap")) > 0
    assert max(training_runs.values(steps, "imitated_tokens")) > 0


@pytest.mark.slow  # ten seconds
def test_pairs_are_two_ways_to_take_one_turn(tmp_path):
    critic = training_runs.write_policy(tmp_path / "critic", seed=5)
    policy = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        policy,
        "unused",
        task="small_environments:answering_sums",
        method="sweet_rl_policy",
        response_tokens=10,
        hyperparameters=(f"critic={critic}", "candidates=6", "pairs=2"),
    )
    run = training_runs.prepared(config)
    later = 0
    for step in range(3):
        batch = collect(run, run.initial_state(), step).batch
        rollouts = batch.rollouts
        assert len(batch) == 4 * config.sampling.prompts_per_step
        for one, two in batch.groups:
            assert rollouts.reward[[one, two]].tolist() == [1, 0]
            begins = [int(np.argmax(rollouts.mask[row])) for row in (one, two)]
            assert begins[0] == begins[1]
            before = rollouts.tokens[[one, two], : begins[0]]
            np.testing.assert_array_equal(before[0], before[1])
            later += begins[0] > 0
            assert not rollouts.mask[one, rollouts.length[one] :].any()
    assert later > 0
