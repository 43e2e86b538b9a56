"""Objectives: losses on `[B, T]` arrays, composed of small parts.

    objective(
        advantage=group_normalized(),
        transforms=[drop_high_covariance(fraction=2e-4, low=1.0, high=5.0)],
        surrogate=ppo_clip(low=1.0, high=1.0),
        aggregation=token_mean(),
    )

is an `Objective`: `loss(stats, rollouts, state, key) -> (loss, (state, metrics))` is a pure
function of what the policy says about each token and of what was recorded when it was drawn. No
part sees a model. A file's folder says its place in the chain; each imports those before it only:

    statistics/    what is measured: masked and group statistics, ratios, divergences
    algebra/       what a part is, and how parts make a loss
    regularizers/  terms added to the loss
    surrogates/    the loss of a token, and how token losses become one number
    advantages/    signed credit, and the critics that some of it comes from
    transforms/    what changes a signal between advantage and surrogate

`compositions` names the compositions that many papers share. At the root there are also networks
that are fitted to rollouts (`scorers`), votes over answers (`choice`), values of written dialogues
(`offline_values`), and the budget of branches (`branch_budget`).
"""

from rlvr_jax.objectives.advantages import *
from rlvr_jax.objectives.algebra import *
from rlvr_jax.objectives.branch_budget import *
from rlvr_jax.objectives.choice import *
from rlvr_jax.objectives.compositions import *
from rlvr_jax.objectives.offline_values import *
from rlvr_jax.objectives.regularizers import *
from rlvr_jax.objectives.scorers import *
from rlvr_jax.objectives.statistics import *
from rlvr_jax.objectives.surrogates import *
from rlvr_jax.objectives.transforms import *
from rlvr_jax.public import public_names
from rlvr_jax.types.parts import part as part

__all__ = ["part", *public_names(globals())]
