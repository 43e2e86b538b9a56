"""Advantages scaled by entropy, and the budget of branches."""

import golden_vectors as golden
import numpy as np
import pytest
import training_runs
from clipped_runs import run
from golden_vectors import array, assert_agrees
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.experience.draws.trees.branching import num_from_prompt
from rlvr_jax.methods.agents.aepo_agentic import entropy_z_score, ppo_cap
from rlvr_jax.objectives import importance_weighted, ppo_clip


def test_the_score_is_that_of_the_batch():
    batch, entropy = golden.rollouts("b"), golden.stats("b").entropy
    found = np.asarray(entropy_z_score(entropy, batch.mask, batch))
    own = np.asarray(entropy)[np.asarray(batch.mask)]
    assert_agrees(found[np.asarray(batch.mask)], (own - own.mean()) / own.std(ddof=1))
    assert not found[~np.asarray(batch.mask)].any()


@pytest.mark.parametrize("tokens", [0, 1, 12])
def test_equal_entropies_and_single_tokens_score_zero(tokens):
    batch = golden.rollouts("b")
    mask = np.zeros(batch.mask.shape, bool)
    mask.ravel()[:tokens] = True
    entropy = array(np.full(mask.shape, 0.1), float)
    assert not np.asarray(entropy_z_score(entropy, array(mask, bool), batch)).any()


@pytest.mark.parametrize(
    ("root", "tool", "number"), [(1.0, 1.0, 7), (0.0, 1.0, 5), (50.0, 0.0, 12), (0.0, 50.0, 1)]
)
def test_rollouts_from_the_prompt_are_at_least_one_and_at_most_all(root, tool, number):
    found = num_from_prompt(array(root, float), array(tool, float), 12, 0.5)
    assert found == number


@pytest.mark.slow
def test_aepo_learns_from_answers_of_the_tasks_environment(tmp_path):
    steps = run_of(tmp_path, "aepo_agentic", "tools=None", "top=5", "window=2")
    assert_turns_were_learned_from(steps)
    assert sum(training_runs.values(steps, "experience/forked_rows")) > 0


def test_the_cap_has_the_value_of_the_clip_and_keeps_the_gradient_above_it():
    capped, clipped = run(ppo_cap(0.2, 0.2, 3.0)), run(ppo_clip(0.2, 0.2, dual=3.0))
    assert_agrees(capped.values, clipped.values)
    above = (clipped.ratio > 1.2) & (clipped.advantage > 0)
    assert above.any() and not clipped.slope[above].any()
    np.testing.assert_array_equal(capped.slope[~above], clipped.slope[~above])
    free = run(importance_weighted())
    frozen = (free.slope * 1.2 / free.ratio)[above]
    assert_agrees(capped.slope[above], frozen)
