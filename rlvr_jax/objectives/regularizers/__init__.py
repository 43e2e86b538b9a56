"""Regularizers: terms added to the policy loss, of a token (`penalty`) or of the batch (`term`).

    entropy          `entropy_bonus`
    near a reference `kl_penalty`; `scale_of_cell` weighs it by the label of a row
    preferences      `implicit_reward_loss`, `best_against_rest`
    demonstrations   `imitate`
    custom           `statistic_penalty`, `statistic_term`

The divergences that `kl_penalty` takes are `rlvr_jax.objectives.statistics.divergences`. A
regularizer of one paper is in that paper's file.
"""

from rlvr_jax.objectives.regularizers.imitation import *
from rlvr_jax.objectives.regularizers.preferences import *
from rlvr_jax.objectives.regularizers.token_penalties import *
from rlvr_jax.objectives.regularizers.turn_preferences import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
