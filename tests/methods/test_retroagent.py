"""RetroAgent: an episode is also paid for progress beyond the best past success on its task."""

import pytest
import training_runs
from turn_runs import assert_turns_were_learned_from, run_of


@pytest.mark.slow
def test_retroagent_learns_from_episodes_and_pays_what_they_claim(tmp_path):
    steps = run_of(tmp_path, "retroagent", "tools=None", "column=1", prompts_per_step=15)
    assert_turns_were_learned_from(steps)
    assert max(training_runs.values(steps, "experience/reward/progress")) > 0
