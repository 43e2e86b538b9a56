"""InT: the policy proposes the step that corrects its first error, and imitates it."""

import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe

PATHS = "hinted_brackets:train=64,judge_paths=true"


def test_interventions_are_imitated_under_the_prompt_as_it_is():
    chain = recipe("intervention_training", incorrect_below=0.5, continuations=4).experience
    imitated = 0
    for collected, _, _ in numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=0.3), steps=8):
        rollouts = collected.batch.rollouts
        assert not rollouts.mask.any()
        if collected.metrics["accepted_interventions"]:
            assert rollouts.records["supervised"].all()
            assert {request.view.label for request in collected.batch.requests} == {"plain"}
            assert (rollouts.length > 0).all()
            imitated += len(rollouts.length)
    assert imitated > 0


@pytest.mark.slow
def test_training_on_interventions(tmp_path):
    steps = training_runs.on_brackets(
        "intervention_training",
        tmp_path,
        PATHS,
        steps=3,
        hyperparameters=("incorrect_below=0.5", "continuations=4"),
    )
    assert max(training_runs.values(steps, "experience/accepted_interventions")) > 0
    assert max(training_runs.values(steps, "imitated_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
