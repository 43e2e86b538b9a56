"""Compositions that many papers share; a paper says what differs."""

from collections.abc import Sequence

from rlvr_jax.objectives.advantages.group_relative import group_normalized, no_advantage
from rlvr_jax.objectives.algebra.core import Objective, objective
from rlvr_jax.objectives.algebra.parts import Aggregation, Transform
from rlvr_jax.objectives.regularizers.token_penalties import kl_penalty
from rlvr_jax.objectives.statistics.ratios import Ratio, token_ratio
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import no_policy_loss, ppo_clip
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip, Epsilon, KLCoefficient

__all__ = ["clipped_objective", "objective_of_terms"]


def clipped_objective(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    *,
    advantage: Transform | None = None,
    epsilon: Epsilon = 1e-6,
    transforms: Sequence[Transform] = (),
    ratio: Ratio = token_ratio,
    dual_clip: DualClip | None = None,
    regularizers: Sequence[Transform] = (),
    kl_coefficient: KLCoefficient = 0.0,
    aggregation: Aggregation | None = None,
) -> Objective:
    """The clipped policy gradient with DAPO's token mean, the usual base of a method.

        loss = Σ_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ_i n_i

    Args:
      advantage: None: `group_normalized(epsilon)`.
      transforms, ratio, regularizers: as for `objective` and `ppo_clip`.
      kl_coefficient: of a k3 penalty to the reference; 0 adds none, and no reference is needed.
      aggregation: None: `token_mean()`.
    """
    penalties = [kl_penalty(kl_coefficient)] if kl_coefficient else []
    return objective(
        advantage=group_normalized(epsilon) if advantage is None else advantage,
        transforms=transforms,
        surrogate=ppo_clip(low=clip_low, high=clip_high, ratio=ratio, dual=dual_clip),
        regularizers=[*regularizers, *penalties],
        aggregation=token_mean() if aggregation is None else aggregation,
    )


def objective_of_terms(regularizers: Sequence[Transform]) -> Objective:
    """A loss without rewards: its regularizers alone, averaged over tokens."""
    return objective(
        advantage=no_advantage(),
        surrogate=no_policy_loss(),
        regularizers=regularizers,
        aggregation=token_mean(),
    )
