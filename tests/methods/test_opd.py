"""OPD: on-policy distillation; a teacher's log-ratio is the reward of every token."""

import pytest
import training_runs


@pytest.mark.slow
def test_training_follows_a_teacher_of_another_folder(tmp_path):
    model = training_runs.write_policy(tmp_path / "model")
    teacher = training_runs.write_policy(tmp_path / "teacher", seed=1)
    config = training_runs.settings(
        model, tmp_path / "run", method="opd", hyperparameters=(f"teacher={teacher}",), steps=2
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(steps, "teacher_log_ratio")) < 0
    assert min(training_runs.values(steps, "gradient_norm")) > 0


def test_a_run_without_a_teacher_does_not_start(tmp_path):
    with pytest.raises(ValueError, match=r"teacher of opd must be a policy folder .* got ''"):
        training_runs.on_brackets("opd", tmp_path / "run", "hinted_brackets:train=8")
