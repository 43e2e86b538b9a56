"""QuestA: hard prompts with the first half of their solution, then with the first quarter."""

import pytest
import training_runs


@pytest.mark.slow
def test_training_on_questions_that_show_half_of_their_solution(tmp_path):
    steps = training_runs.on_brackets("questa", tmp_path)
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    lines = (tmp_path / "outcomes.jsonl").read_text()
    assert "augmented(fraction=0.5)" in lines and "plain" not in lines
