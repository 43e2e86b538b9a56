"""PrefixRL: hard prompts with part of a correct solution as beginning, together with plain ones."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stages.choices.pairs import contrast_pairs, mixed_groups
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.prefix_rl import prefix_fraction


@pytest.mark.slow
def test_training_behind_prefixes(tmp_path):
    steps = training_runs.on_brackets("prefix_rl", tmp_path)
    assert max(training_runs.values(steps, "experience/prefixed_fraction")) > 0
    assert max(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


def test_prefixes_are_context_and_their_lengths_stay():
    fractions = [prefix_fraction(3, number, 1, 0.4, 0.8) for number in range(50)]
    assert fractions == [prefix_fraction(3, number, 1, 0.4, 0.8) for number in range(50)]
    assert 0.4 <= min(fractions) < 0.5 and 0.7 < max(fractions) < 0.8
    chain, prefixed = recipe("prefix_rl").experience, 0
    for collected, told, _ in numpy_actor.walk(chain):
        rollouts = collected.batch.rollouts
        given = (
            np.zeros_like(rollouts.mask)
            if "origin" not in rollouts.records
            else rollouts.records["origin"] == 3
        )
        assert not (rollouts.mask & given).any()
        for rows in collected.batch.groups:
            assert len({collected.batch.requests[row].view for row in rows}) == 1
        prefixed += told["prefixed_fraction"]
    assert 0 < prefixed < 4


def test_a_pair_is_a_right_row_and_one_of_the_commonest_wrong_answer():
    outcomes = np.array([[1, 0, np.nan], [1, 1, np.nan], [0, 0, 0], [np.nan, 1, 0]])
    assert mixed_groups(outcomes).tolist() == [True, False, False, True]
    (found,) = numpy_actor.walk(recipe("prefix_rl").experience, steps=1)
    batch = found[0].batch
    for pair in contrast_pairs(batch):
        rows = batch.groups[pair.group]
        assert pair.correct in rows and pair.incorrect in rows
        assert batch.rollouts.outcome[[pair.correct, pair.incorrect]].tolist() == [1, 0]
