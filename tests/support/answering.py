"""An actor that answers some prompts, and the prompts that were asked."""

import numpy as np

from rlvr_jax.experience.laws import numpy_actor


def numbers_of(found):
    return [request.number for request in found.batch.requests]


class Right(numpy_actor.NumpyActor):
    """Correct answers only to certain prompts, by (number) -> share of a group's first rows."""

    def __init__(self, fraction):
        super().__init__(chance=0.0)
        object.__setattr__(self, "fraction", fraction)

    def grade(self, batch):
        graded = super().grade(batch)
        outcome = graded.rollouts.outcome.copy()
        for rows in graded.groups:
            correct = round(self.fraction(graded.requests[rows[0]].number) * len(rows))
            outcome[rows] = np.arange(len(rows)) < correct
        told = [type(grade)(float(x)) for grade, x in zip(graded.grades, outcome, strict=True)]
        return graded.graded(told)
