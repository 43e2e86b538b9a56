"""SDPO: the policy is its own teacher after it has seen a correct response."""

import numpy as np

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe


def test_the_teacher_is_shown_a_right_answer_of_the_group_never_the_rows_own():
    shown = []

    class Showing(numpy_actor.NumpyActor):
        def prompts(self, requests):
            shown.append([request.view.label for request in requests])
            return super().prompts(requests)

    found = numpy_actor.walk(recipe("sdpo").experience, Showing(chance=0.3))
    # A step asks for the prompts twice: to draw from, and to be taught by.
    for (collected, _, _), labels_of in zip(found, shown[1::2], strict=True):
        batch, rollouts = collected.batch, collected.batch.rollouts
        for rows in batch.groups:
            correct = rollouts.outcome[rows] == 1
            others = correct.sum() - correct > 0
            np.testing.assert_array_equal(rollouts.records["second_length"][rows] > 0, others)
            labels = {labels_of[row] for row in rows if rollouts.records["second_length"][row]}
            assert "plain" not in labels and len(labels) <= 2
        assert collected.metrics["shown_rows"] == np.mean(rollouts.records["second_length"] > 0)
