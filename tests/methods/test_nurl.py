"""NuRL: a prompt without a correct response is sampled again with an abstract hint."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe


def test_groups_are_drawn_anew_with_hints_after_the_first_stage():
    chain, again = recipe("nurl", first_stage=2).experience, 0
    actor = numpy_actor.NumpyActor(chance=-0.2)
    for step, (collected, told, _) in enumerate(numpy_actor.walk(chain, actor, steps=5)):
        batch = collected.batch
        labels = batch.by_group(np.array([a.view.label != "plain" for a in batch.requests]), False)
        incorrect = (collected.seen[0].outcomes() == 0).all(axis=1)
        np.testing.assert_array_equal(labels[:, :3].all(axis=1), incorrect & (step >= 2))
        assert not labels[:, 3].any()
        again += int(labels.sum())
        assert told["pool_prompts"] <= 12
    assert again > 0


@pytest.mark.slow
def test_training_with_hints_for_what_nobody_answers(tmp_path):
    given = ("first_stage=1",)
    steps = training_runs.on_brackets("nurl", tmp_path, steps=3, hyperparameters=given)
    fractions = training_runs.values(steps, "experience/redrawn_fraction")
    assert fractions[0] == 0 and max(fractions[1:]) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
