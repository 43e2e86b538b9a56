"""G²RPO-A, PrefixRL, SEELE: runs in which responses begin with part of a solution."""

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


@pytest.mark.slow
def test_training_behind_prefixes(tmp_path):
    steps = training_runs.on_brackets("prefix_rl", tmp_path)
    assert max(training_runs.values(steps, "experience/prefixed_fraction")) > 0
    assert max(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.slow
def test_training_searches_for_hints(tmp_path):
    steps = training_runs.on_brackets("seele", tmp_path)
    shares = training_runs.values(steps, "experience/hint_fraction")
    assert all(0 <= share <= 1 for share in shares) and shares[0] < 10 / 11
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    # Sampler and scorer agree on what was drawn, whatever was given.
    assert max(training_runs.values(steps, "sampler_ratio/max")) < 1.001
