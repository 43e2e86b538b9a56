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

Everything in the `__all__` of the modules below can be imported from here.
"""

from rlvr_jax.objectives.advantages import *
from rlvr_jax.objectives.aggregations import *
from rlvr_jax.objectives.anchored_entropy import *
from rlvr_jax.objectives.arm_budget import *
from rlvr_jax.objectives.balance import *
from rlvr_jax.objectives.branch_budget import *
from rlvr_jax.objectives.choices import *
from rlvr_jax.objectives.class_penalties import *
from rlvr_jax.objectives.conditional import *
from rlvr_jax.objectives.confidence import *
from rlvr_jax.objectives.confident_errors import *
from rlvr_jax.objectives.conflicts import *
from rlvr_jax.objectives.constraints import *
from rlvr_jax.objectives.core import *
from rlvr_jax.objectives.corrections import *
from rlvr_jax.objectives.covariance import *
from rlvr_jax.objectives.critics import *
from rlvr_jax.objectives.curvature import *
from rlvr_jax.objectives.demonstrations import *
from rlvr_jax.objectives.difficulty import *
from rlvr_jax.objectives.difficulty_bins import *
from rlvr_jax.objectives.distribution_matching import *
from rlvr_jax.objectives.divergences import *
from rlvr_jax.objectives.down_sampling import *
from rlvr_jax.objectives.effective_rank import *
from rlvr_jax.objectives.entropy_band import *
from rlvr_jax.objectives.entropy_change import *
from rlvr_jax.objectives.entropy_control import *
from rlvr_jax.objectives.entropy_credit import *
from rlvr_jax.objectives.entropy_scaling import *
from rlvr_jax.objectives.f_divergences import *
from rlvr_jax.objectives.frozen_weights import *
from rlvr_jax.objectives.group_diversity import *
from rlvr_jax.objectives.group_order import *
from rlvr_jax.objectives.groups import *
from rlvr_jax.objectives.hesitation_reward import *
from rlvr_jax.objectives.heterogeneity import *
from rlvr_jax.objectives.hybrid_critic import *
from rlvr_jax.objectives.implicit_rewards import *
from rlvr_jax.objectives.induced_value import *
from rlvr_jax.objectives.informative import *
from rlvr_jax.objectives.low_probability import *
from rlvr_jax.objectives.macros import *
from rlvr_jax.objectives.masked import *
from rlvr_jax.objectives.mirror_descent import *
from rlvr_jax.objectives.multi_reward import *
from rlvr_jax.objectives.noisy_rewards import *
from rlvr_jax.objectives.order_statistics import *
from rlvr_jax.objectives.origins import *
from rlvr_jax.objectives.outcome_classification import *
from rlvr_jax.objectives.outcome_credit import *
from rlvr_jax.objectives.parts import *
from rlvr_jax.objectives.passk import *
from rlvr_jax.objectives.pessimistic_critics import *
from rlvr_jax.objectives.predictive_kl import *
from rlvr_jax.objectives.preferences import *
from rlvr_jax.objectives.prompt_free import *
from rlvr_jax.objectives.rare_events import *
from rlvr_jax.objectives.ratios import *
from rlvr_jax.objectives.reciprocity import *
from rlvr_jax.objectives.regularized_gradients import *
from rlvr_jax.objectives.regularizers import *
from rlvr_jax.objectives.returns import *
from rlvr_jax.objectives.reweighted_values import *
from rlvr_jax.objectives.risk import *
from rlvr_jax.objectives.risk_credit import *
from rlvr_jax.objectives.rollout_budget import *
from rlvr_jax.objectives.scopes import *
from rlvr_jax.objectives.score_norms import *
from rlvr_jax.objectives.second_prompt import *
from rlvr_jax.objectives.selection import *
from rlvr_jax.objectives.self_certainty import *
from rlvr_jax.objectives.self_verification import *
from rlvr_jax.objectives.semantic_entropy import *
from rlvr_jax.objectives.sequence_regression import *
from rlvr_jax.objectives.shaping import *
from rlvr_jax.objectives.smoothed_ratio import *
from rlvr_jax.objectives.soft_clips import *
from rlvr_jax.objectives.soft_tokens import *
from rlvr_jax.objectives.step_credit import *
from rlvr_jax.objectives.steps import *
from rlvr_jax.objectives.summary import *
from rlvr_jax.objectives.surrogates import *
from rlvr_jax.objectives.target_temperature import *
from rlvr_jax.objectives.trust_regions import *
from rlvr_jax.objectives.turn_preferences import *
from rlvr_jax.objectives.value_regression import *
from rlvr_jax.objectives.weights import *
from rlvr_jax.objectives.whitening import *
from rlvr_jax.objectives.window_entropy import *
from rlvr_jax.objectives.windows import *
