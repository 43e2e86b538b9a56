"""Surrogates: the loss of a token; and aggregations of token losses.

    policy gradient  `ppo_clip`, `reinforce`, `importance_weighted`, `weighted_reinforce`,
                     `no_policy_loss`
    another writer   `by_origin`, `shaped_probability`
    a teacher        `distilled`
    soft tokens      `soft_token_logp`, `perturbed`, `mixture_weights`
    aggregations     `token_mean`, `rollout_mean_token_mean`, `rollout_mean_token_sum`,
                     `row_mean_token_mean`, `fixed_length_mean`, `fixed_length_sum`

A surrogate of one paper is in that paper's file.
"""

from rlvr_jax.objectives.surrogates.aggregations import *
from rlvr_jax.objectives.surrogates.by_origin import *
from rlvr_jax.objectives.surrogates.distillation import *
from rlvr_jax.objectives.surrogates.policy_gradient import *
from rlvr_jax.objectives.surrogates.soft_tokens import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
