"""TP as a judge: a prover checks the steps of a solution; unreadable steps are ungraded."""

import pytest
from training_runs import trained, values

from rlvr_jax.verifiers.texts.tp_judge import check_lines


@pytest.mark.thorough
def test_a_prover_reads_steps_and_what_it_cannot_read_is_no_verdict(model, tmp_path):
    found = check_lines("<think>1 = 2</think>1 + 1 = 2\n\n2 * 2 = 5\nx is large")
    assert (found.outcome, found.stage) == (0.0, "FALSE")
    assert found.info == {"steps": 3, "false_steps": 1}
    lines = trained(
        model,
        tmp_path / "run",
        "tp_judge",
        task="text_tasks:lists",
        hyperparameters=("behind_prompt=true",),
        response_tokens=1,
        samples_per_prompt=16,
    )
    assert all(0 < count < 64 for count in values(lines, "experience/rows_without_reward"))
    assert max(values(lines, "experience/reward/proved")) > 0
