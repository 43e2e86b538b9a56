"""G²RPO-A: two rows of a group begin with part of a solution, less of it as the policy improves."""

import pytest
import training_runs


@pytest.mark.slow
def test_training_gives_the_first_rows_the_beginning_of_a_solution(tmp_path):
    steps = training_runs.on_brackets("g2rpo_a", tmp_path, steps=3)
    assert min(training_runs.values(steps, "experience/guided_tokens")) > 0
    assert min(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    lengths = training_runs.values(steps, "experience/guidance_length")
    assert lengths[0] == 3072
