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


@pytest.mark.parametrize("name", ["mel", "rlad"])
def test_a_policy_that_cannot_read_the_request_is_refused_with_one_that_can(name, tmp_path):
    told = r"view requesting.* got '\w+'.*hinted_brackets cannot read\. Use a policy that .*smollm2"
    with pytest.raises(ValueError, match=told):
        training_runs.on_brackets(name, tmp_path / "run", "hinted_brackets:train=8")
    assert not (tmp_path / "run" / "config.json").exists()
