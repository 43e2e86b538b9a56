"""Regularizers: terms beside the policy loss, of a token (`penalty`) or of the batch (`term`).

    entropy          `entropy_bonus`, `adaptive_entropy_bonus`, `anchored_entropy`,
                     `banded_entropy_bonus`, `diversity_weighted_entropy`
    near a reference `kl_penalty`, `kl_by_entropy`, `predictive_kl_penalty`, `mirror_descent_kl`
    a second prompt  `second_prompt_divergence`, `second_prompt_logp_penalty`
    preferences      `implicit_reward_loss`, `value_incentive`, `best_against_rest`
    demonstrations   `imitate`, `calibrate_to_expert`, `teach_the_worst`
    of your own      `statistic_penalty`, `statistic_term`; `scheduled` changes a weight over steps

The divergences that some of them take are `rlvr_jax.objectives.statistics.divergences`.
"""

from rlvr_jax.objectives.regularizers.imitation import *
from rlvr_jax.objectives.regularizers.preferences import *
from rlvr_jax.objectives.regularizers.token_penalties import *
from rlvr_jax.objectives.regularizers.turn_preferences import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
