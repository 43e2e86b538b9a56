"""Compositions that are common to many papers; a paper's file has the differences."""

from collections.abc import Sequence
from typing import Any

from rlvr_jax.objectives.advantages.critics import Trunk, critic_of
from rlvr_jax.objectives.advantages.group_relative import (
    group_centered,
    group_normalized,
    no_advantage,
)
from rlvr_jax.objectives.advantages.whitening import whitened
from rlvr_jax.objectives.algebra.core import Objective, objective
from rlvr_jax.objectives.algebra.parts import Aggregation, Surrogate, Transform
from rlvr_jax.objectives.regularizers.token_penalties import (
    entropy_bonus,
    kl_penalty,
    statistic_term,
)
from rlvr_jax.objectives.statistics.ratios import Ratio, token_ratio
from rlvr_jax.objectives.surrogates.aggregations import fixed_length_sum, token_mean
from rlvr_jax.objectives.surrogates.by_origin import by_origin
from rlvr_jax.objectives.surrogates.policy_gradient import (
    importance_weighted,
    no_policy_loss,
    ppo_clip,
)
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    DualClip,
    EntropyCoefficient,
    Epsilon,
    KLCoefficient,
    MaxLength,
    ValueClip,
)


def clipped_objective(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    *,
    epsilon: Epsilon = 1e-6,
    advantage: Transform | None = None,
    transforms: Sequence[Transform] = (),
    ratio: Ratio = token_ratio,
    dual_clip: DualClip | None = None,
    regularizers: Sequence[Transform] = (),
    kl_coefficient: KLCoefficient = 0.0,
    entropy_coefficient: EntropyCoefficient = 0.0,
    aggregation: Aggregation | None = None,
) -> Objective:
    """The clipped policy gradient with DAPO's token mean: the base of most methods.

        loss = Σ_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ_i n_i

    Args:
      advantage: None: `group_normalized(epsilon)`.
      transforms, ratio, regularizers: as for `objective` and `ppo_clip`.
      kl_coefficient: of a k3 penalty to the reference; 0 adds none, and no reference is needed.
      entropy_coefficient: of an `entropy_bonus`, which acts after the penalty; 0 adds none.
      aggregation: None: `token_mean()`.
    """
    terms = [kl_penalty(kl_coefficient)] if kl_coefficient else []
    terms += [entropy_bonus(entropy_coefficient)] if entropy_coefficient else []
    return objective(
        advantage=group_normalized(epsilon) if advantage is None else advantage,
        transforms=transforms,
        surrogate=ppo_clip(low=clip_low, high=clip_high, ratio=ratio, dual=dual_clip),
        regularizers=[*regularizers, *terms],
        aggregation=token_mean() if aggregation is None else aggregation,
    )


def clipped_with_critic(
    estimator: Transform,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    value_clip: ValueClip = 0.2,
    *,
    ratio: Ratio = token_ratio,
    trunk: Trunk = "own",
) -> dict[str, Any]:
    """PPO: `clipped_objective` on whitened advantages, and their critic, as fields of a `Recipe`.

    Args:
      estimator: the advantage before whitening, as for `critic_of`.
      ratio: as for `clipped_objective`.
      trunk: of the critic: "own", or "policy" for a head on the policy's hidden states. That head
        does not train the policy.
    """
    advantage = whitened(estimator)
    return {
        "objective": clipped_objective(clip_low, clip_high, advantage=advantage, ratio=ratio),
        "critic": critic_of(estimator, value_clip, trunk=trunk),
    }


def mixed_objective(
    foreign: Surrogate,
    max_length: MaxLength = 8192,
    entropy_coefficient: EntropyCoefficient = 0.001,
    *,
    own: Surrogate | None = None,
    transforms: Sequence[Transform] = (),
) -> Objective:
    """LUFFY's objective: centered rewards on the policy's tokens and on those of another policy.

        loss = Σ over all tokens / L - c_H mean H

    Args:
      foreign: loss of the other policy's tokens.
      max_length: L, the constant divisor (tokens).
      own: loss of the policy's tokens; None: `importance_weighted()`.
      transforms: token transforms, as for `objective`.
    """
    bonus = [statistic_term(-entropy_coefficient, "entropy")] if entropy_coefficient else []
    return objective(
        advantage=group_centered(),
        transforms=transforms,
        surrogate=by_origin(importance_weighted() if own is None else own, foreign),
        regularizers=bonus,
        aggregation=fixed_length_sum(max_length),
    )


def objective_of_terms(regularizers: Sequence[Transform]) -> Objective:
    """A loss without rewards: only its regularizers, averaged over tokens."""
    return objective(
        advantage=no_advantage(),
        surrogate=no_policy_loss(),
        regularizers=regularizers,
        aggregation=token_mean(),
    )
