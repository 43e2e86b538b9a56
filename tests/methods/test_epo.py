"""EPO: an entropy bonus for agents, with a penalty for entropies unlike those of the past."""

import pytest
import training_runs
from turn_runs import assert_turns_were_learned_from, run_of


@pytest.mark.slow
def test_epo_learns_from_each_step_of_an_episode(tmp_path):
    steps = run_of(tmp_path, "epo", "max_steps=3")
    assert_turns_were_learned_from(steps)
    # A turn is a row, so there are more rows than answers.
    answers, turns = (training_runs.values(steps, f"experience/{n}") for n in ("answers", "turns"))
    assert sum(turns) > sum(answers)
