"""Surrogates: the loss of a token; and the aggregations, how token losses become one number.

    policy gradient  `ppo_clip`, `reinforce`, `importance_weighted`, `weighted_reinforce`,
                     `reference_weighted`, `no_policy_loss`, `clipped_noise`
    soft clips       `geometric_mean_clip`, `ppo_cap`, `sigmoid_gated`, `regularized_clip`
    regression       `log_ratio_regression`, `pairwise_regression`, `outcome_classification`,
                     `uniform_value_regression`
    another writer   `by_origin`, `shaped_probability`, `damped_ratio`, `mixture_importance`,
                     `shaped_ratio`, `imitated`
    another input    `under_second_prompt`, `with_soft_tokens`
    a teacher        `distilled`
    aggregations     `token_mean`, `rollout_mean_token_mean`, `rollout_mean_token_sum`,
                     `row_mean_token_mean`, `fixed_length_mean`, `fixed_length_sum`

Transforms that make sense with one surrogate alone stand beside it (`outcome_residual`,
`regularized_leave_one_out`, `keep_negative_rollouts`, …).
"""

from rlvr_jax.objectives.surrogates.aggregations import *
from rlvr_jax.objectives.surrogates.by_origin import *
from rlvr_jax.objectives.surrogates.distillation import *
from rlvr_jax.objectives.surrogates.frozen_weights import *
from rlvr_jax.objectives.surrogates.policy_gradient import *
from rlvr_jax.objectives.surrogates.soft_tokens import *
from rlvr_jax.public import public_names

__all__ = public_names(globals())
