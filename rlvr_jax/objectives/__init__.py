"""Objectives: losses on `[B, T]` arrays, composed of small parts.

    objective(
        advantage=group_normalized(),
        transforms=[drop_high_covariance(fraction=2e-4, low=1.0, high=5.0)],
        surrogate=ppo_clip(low=1.0, high=1.0),
        aggregation=token_mean(),
    )

is an `Objective`: `loss(stats, rollouts, state, key) -> (loss, (state, metrics))` is a pure
function of what the policy says about each token and of what was recorded when it was drawn. No
part sees a model. The room also holds what else is decided from a batch of outcomes: rewards made
from them (`shaping`) and the groups that are trained on (`selection`).
"""

from rlvr_jax.objectives.advantages import group_centered, group_normalized, leave_one_out
from rlvr_jax.objectives.aggregations import (
    fixed_length_mean,
    fixed_length_sum,
    rollout_mean_token_mean,
    rollout_mean_token_sum,
    row_mean_token_mean,
    token_mean,
)
from rlvr_jax.objectives.choices import masked_top_k, random_choice
from rlvr_jax.objectives.core import (
    Aggregation,
    Context,
    Objective,
    Spec,
    Surrogate,
    Transform,
    UpdatePlan,
    describe,
    objective,
    stateless,
)
from rlvr_jax.objectives.covariance import token_covariance
from rlvr_jax.objectives.divergences import absolute, k1, k2, k3, k3_importance, k3_plus
from rlvr_jax.objectives.groups import (
    group_all_equal,
    group_count,
    group_mean,
    group_others_mean,
    group_spread,
    group_std,
)
from rlvr_jax.objectives.masked import (
    masked_count,
    masked_max,
    masked_mean,
    masked_min,
    masked_quantile,
    masked_std,
    masked_sum,
    share_of,
)
from rlvr_jax.objectives.ratios import (
    clamped_token_ratio,
    clip_to_trusted,
    is_clipped,
    product_ratio,
    sequence_ratio,
    token_ratio,
)
from rlvr_jax.objectives.regularizers import adaptive_entropy_bonus, entropy_bonus, kl_penalty
from rlvr_jax.objectives.selection import Selection, drop_rollouts, mixed_outcomes
from rlvr_jax.objectives.shaping import (
    overlong_penalty,
    overlong_shaping,
    plain_outcome,
    signed_outcome,
)
from rlvr_jax.objectives.summary import effective_sample_size
from rlvr_jax.objectives.surrogates import importance_weighted, ppo_clip, reinforce
from rlvr_jax.objectives.weights import (
    drop_high_covariance,
    drop_truncated,
    is_chosen,
    keep_top_entropy,
    penalize_high_covariance,
)

__all__ = [
    "Aggregation",
    "Context",
    "Objective",
    "Selection",
    "Spec",
    "Surrogate",
    "Transform",
    "UpdatePlan",
    "absolute",
    "adaptive_entropy_bonus",
    "clamped_token_ratio",
    "clip_to_trusted",
    "describe",
    "drop_high_covariance",
    "drop_rollouts",
    "drop_truncated",
    "effective_sample_size",
    "entropy_bonus",
    "fixed_length_mean",
    "fixed_length_sum",
    "group_all_equal",
    "group_centered",
    "group_count",
    "group_mean",
    "group_normalized",
    "group_others_mean",
    "group_spread",
    "group_std",
    "importance_weighted",
    "is_chosen",
    "is_clipped",
    "k1",
    "k2",
    "k3",
    "k3_importance",
    "k3_plus",
    "keep_top_entropy",
    "kl_penalty",
    "leave_one_out",
    "masked_count",
    "masked_max",
    "masked_mean",
    "masked_min",
    "masked_quantile",
    "masked_std",
    "masked_sum",
    "masked_top_k",
    "mixed_outcomes",
    "objective",
    "overlong_penalty",
    "overlong_shaping",
    "penalize_high_covariance",
    "plain_outcome",
    "ppo_clip",
    "product_ratio",
    "random_choice",
    "reinforce",
    "rollout_mean_token_mean",
    "rollout_mean_token_sum",
    "row_mean_token_mean",
    "sequence_ratio",
    "share_of",
    "signed_outcome",
    "stateless",
    "token_covariance",
    "token_mean",
    "token_ratio",
]
