"""SSB: the policy learns to explain as it does after seeing a correct and an incorrect response."""

import numpy as np

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe


def test_replies_stand_under_the_bare_prompt_at_the_temperature_of_the_loss():
    actor, kept, other = numpy_actor.NumpyActor(chance=0.5), 0, 0
    for collected, _, _ in numpy_actor.walk(recipe("ssb").experience, actor):
        batch, rollouts = collected.batch, collected.batch.rollouts
        if not collected.metrics["accepted_replies"]:
            assert not rollouts.mask.any()
            continue
        assert (rollouts.outcome == 1).all() and (rollouts.temperature == 2).all()
        assert (rollouts.records["sampled_temperature"] == 1).all()
        np.testing.assert_array_equal(rollouts.prompt_tokens, actor.prompts(batch.requests)[0])
        other += (rollouts.records["second_tokens"] != rollouts.prompt_tokens).any(axis=1).sum()
        kept += len(batch)
    # The actor has one word of eleven for each view: two views may share theirs.
    assert kept > 0 and other > kept / 2
