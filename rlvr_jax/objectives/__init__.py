"""Objectives: losses on `[B, T]` arrays (rollouts, response tokens), composed of small parts.

    loss = objective(advantage=group_normalized(), surrogate=ppo_clip(low=0.2, high=0.2),
                     transforms=[keep_top_entropy(0.2)], aggregation=token_mean())
    value, (state, metrics) = loss.loss(stats, rollouts, state, key)

`Objective.loss` is a pure function of two inputs: the policy's statistics of each token, and the
rollouts with the records of sampling. No part reads the model. Each folder holds one kind of part,
and imports only from the folders before it:

    statistics/    measurements: masked and group statistics, ratios, divergences
    algebra/       parts, and their composition to a loss
    regularizers/  terms added to the loss
    surrogates/    the loss of a token, and the aggregation of token losses
    advantages/    signed credit from rewards, and the critics that some advantages read
    transforms/    changes of a signal between advantage and surrogate

`compositions` has the objectives that are common to many papers. `rlvr_jax.objectives.laws` checks
an objective.
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
