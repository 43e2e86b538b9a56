"""Objectives: losses on `[B, T]` arrays, composed of small parts.

    objective(
        advantage=group_normalized(),
        transforms=[drop_high_covariance(fraction=2e-4, low=1.0, high=5.0)],
        surrogate=ppo_clip(low=1.0, high=1.0),
        aggregation=token_mean(),
    )

is an `Objective`: `loss(stats, rollouts, state, key) -> (loss, (state, metrics))` is a pure
function of the policy's statistics of each token and of the records of sampling. No part sees a
model. A file's folder is its place in the chain; each imports only those before it:

    statistics/    measurements: masked and group statistics, ratios, divergences
    algebra/       parts, and their composition to a loss
    regularizers/  terms added to the loss
    surrogates/    the loss of a token, and the aggregation of token losses
    advantages/    signed credit, and the critics of some of them
    transforms/    changes of a signal between advantage and surrogate

`compositions` names the compositions common to many papers.
"""

from rlvr_jax.objectives.advantages import *
from rlvr_jax.objectives.algebra import *
from rlvr_jax.objectives.compositions import *
from rlvr_jax.objectives.regularizers import *
from rlvr_jax.objectives.statistics import *
from rlvr_jax.objectives.surrogates import *
from rlvr_jax.objectives.transforms import *
from rlvr_jax.public import public_names
from rlvr_jax.types.parts import part as part

__all__ = ["part", *public_names(globals())]
