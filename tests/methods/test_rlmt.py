"""RLMT: chat with a thought before the answer; a reward model reads the answer only."""

import numpy as np
import pytest
from training_runs import trained, values


@pytest.mark.thorough
def test_a_reward_model_sees_the_answer_and_its_score_is_learned(model, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("{response} =")
    lines = trained(
        model,
        tmp_path / "run",
        "rlmt",
        task="text_tasks:lists",
        judge="own_judges:longer",
        judge_prompt=str(prompt),
        judge_options=("visible=true",),
    )
    assert np.mean(values(lines, "experience/reward/preference")) > 0
    # Empty answers reach it as a word of their own.
    assert max(values(lines, "experience/judge_no_verdict")) == 0


def test_a_judge_reads_the_answer_strictly_or_not_at_all(model, tmp_path):
    told = r"--judge-options: visible must be true, false or strict, got 'maybe'"
    with pytest.raises(ValueError, match=told):
        trained(
            model,
            tmp_path / "run",
            "rlmt",
            task="text_tasks:lists",
            judge="own_judges:longer",
            judge_options=("visible=maybe",),
        )
