"""Steps of a method's chain with the actor of numpy, and what tests read of their batches."""

import numpy as np

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe


def walked(name, steps, actor=None, **hyperparameters):
    """Steps of a method's chain, each as (collected, metrics, state)."""
    return numpy_actor.walk(recipe(name, **hyperparameters).experience, actor, steps)


def numbers(collected):
    """The prompts of the groups, by their numbers."""
    return [collected.batch.requests[rows[0]].number for rows in collected.batch.groups]


def of_cell(batch, cell):
    """The rows of a cell."""
    return np.flatnonzero(batch.rollouts.records["cell"] == cell)
