"""Training: the optimizer updates from a batch of rollouts.

    gradient = objective_gradient(model, recipe("dapo").objective, params, rollouts, state, key)
    gradient.loss, gradient.grads, gradient.stats.entropy    # also for any score: `exact_gradient`

`update` is one optimizer update; `learn` makes all updates of a step, split by a `BatchPlan`.
"""

from rlvr_jax.training.learning import Learner, learn
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.update import TrainState, objective_gradient, update

__all__ = ["BatchPlan", "Learner", "TrainState", "learn", "objective_gradient", "update"]
