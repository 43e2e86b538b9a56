"""MEL: the policy's comparison of its correct and incorrect responses becomes part of its
weights.
"""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe


def test_what_helps_is_imitated_behind_the_prompt_it_was_written_to():
    chain, kept = recipe("mel").experience, 0
    for collected, _, _ in numpy_actor.walk(chain, steps=6):
        batch, rollouts = collected.batch, collected.batch.rollouts
        said = rollouts.records["supervised"]
        kept += int(said.sum())
        assert not rollouts.mask[said].any() and rollouts.mask[~said].any(axis=1).all()
        assert all(batch.requests[row].view.label != "plain" for row in np.flatnonzero(said))
        # Each is a group of its own.
        assert [len(rows) for rows in batch.groups] == [4] * 4 + [1] * int(said.sum())
        assert len(collected.seen) == 1 + (collected.metrics["mixed_groups"] > 0)
    assert kept > 0


@pytest.mark.slow
def test_training_on_what_the_policy_says_about_its_answers(tmp_path):
    steps = training_runs.on_brackets("mel", tmp_path)
    assert max(training_runs.values(steps, "experience/accepted_notes")) > 0
    assert max(training_runs.values(steps, "imitated_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
