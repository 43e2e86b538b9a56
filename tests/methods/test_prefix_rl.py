"""PrefixRL: hard prompts with part of a correct solution as beginning, together with plain ones."""

import pytest
import training_runs


@pytest.mark.slow
def test_training_behind_prefixes(tmp_path):
    steps = training_runs.on_brackets("prefix_rl", tmp_path)
    assert max(training_runs.values(steps, "experience/prefixed_fraction")) > 0
    assert max(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
