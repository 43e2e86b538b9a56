"""Training: the updates from a batch of rollouts.

`objective_gradient` is the three-step gradient of any objective, `update` one optimizer update of a
`TrainState`; `learn` makes all updates of a step with compiled programs (`programs`), split by a
`BatchPlan`. `critic` fits the critic of methods that have one, `scorers` a learned scorer in its
place, `layout` says where arrays lie.
"""

from rlvr_jax.training.learning import Learner, learn
from rlvr_jax.training.plan import BatchPlan
from rlvr_jax.training.update import TrainState, objective_gradient, update

__all__ = ["BatchPlan", "Learner", "TrainState", "learn", "objective_gradient", "update"]
