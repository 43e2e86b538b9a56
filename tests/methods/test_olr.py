"""OLR: under noisy labels, grades a prompt by the answer on which the policy settles."""

import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor


def test_a_group_is_graded_by_its_settled_majority():
    changed = 0
    given = {"start": 0, "slope": -1.0}
    for collected, _, _ in walked("olr", 8, numpy_actor.NumpyActor(chance=0.2), **given):
        batch = collected.batch
        for rows in batch.groups:
            answers = [batch.grades[row].answer for row in rows]
            told, sampled = batch.rollouts.outcome[rows], collected.seen[0].rollouts.outcome[rows]
            if (told != sampled).any():
                most = max(set(answers), key=answers.count)
                assert told.tolist() == [float(answer == most) for answer in answers]
                assert (batch.rollouts.reward[rows] == told).all()
                changed += 1
    assert changed > 0


@pytest.mark.slow
def test_training_on_labels_that_answers_repair(tmp_path):
    given = ("start=0", "slope=-1")
    steps = training_runs.on_brackets(
        "olr", tmp_path, "hinted_brackets:train=8", steps=4, hyperparameters=given
    )
    assert max(training_runs.values(steps, "experience/relabelled_groups")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
