"""Entropy bonus: GRPO with the mean entropy of the policy added to the maximized objective.

Wang et al. 2025, "Reinforcement Learning for Reasoning in Large Language Models with One Training
Example", https://arxiv.org/abs/2504.20571

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ [c_pg max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) - c_H H + c_KL k3(π ‖ π_ref)] / Σ n_i

H is the entropy over the whole vocabulary, with its gradient. Coefficients are the defaults of the
authors' code. With a `target`, the coefficient follows the entropy as in Skywork-OR1
(https://arxiv.org/abs/2505.22312) and TRL. It acts if the last mean entropy was at most the target.
It rises by Δ (`coefficient_step`) while the entropy is at most the target, else it falls. The
values of Δ and the bounds are TRL's defaults; TRL starts at c_H = 0 and has the target 0.2. The
annealing of the bonus to 0 (`anneal_updates`) is ours.

Left out: training on one prompt that is repeated 128 times per batch, sampled at temperature 0.6.
Reports: Qwen2.5-Math-1.5B with a single training example: MATH500 from 36.0 to 73.6 %.
Traps: If the coefficient is too large, entropy explodes, because the bonus raises the whole tail of
the vocabulary. An entropy that is estimated by the mean of -logp has no gradient on-policy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Float, Int

from rlvr_jax.objectives import Transform, clipped_objective, masked_mean, part, scale_weight
from rlvr_jax.objectives.regularizers.token_penalties import entropy_bonus as constant_bonus
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, arguments_of, replace
from rlvr_jax.types.hyperparameters import EntropyCoefficient, Finite, NonNegativeInt, Positive


class AdaptiveEntropyState(NamedTuple):
    """The coefficient of `adaptive_entropy_bonus`, and the mean entropy it saw last (nats)."""

    coefficient: Float[Array, ""]
    last_entropy: Float[Array, ""]


@part(reads={"entropy", "batch_statistics"}, writes={"penalty"})
def adaptive_entropy_bonus(
    target: Finite, step: Positive, low: float = 0.0, high: float = 1.0, initial: float = 0.0
) -> Transform:
    """An entropy bonus that acts while the entropy is at or below a target.

    H̄ is the mean entropy of the tokens. The applied coefficient is c if the H̄ of the last update
    was at most `target`, else 0 (also at the first update). Then c' = min(c + step, high) if H̄ ≤
    target, else max(c - step, low). A batch without tokens changes nothing.

    Args:
      target: mean entropy up to which the bonus acts, nats.
      step: change of the coefficient in an update.
      low, high: bounds of the coefficient.
      initial: coefficient before the first update, from `low` to `high`.
    Metrics: entropy_coefficient (the applied coefficient).
    """
    if not low <= initial <= high:
        raise ValueError(
            f"adaptive_entropy_bonus: initial must be in [{low}, {high}], got {initial}"
        )

    def init(spec):
        return AdaptiveEntropyState(jnp.full((), initial, float), jnp.full((), jnp.inf, float))

    def apply(signals, context, state):
        entropy = context.stats.entropy
        applied = jnp.where(state.last_entropy <= target, state.coefficient, 0)
        penalty = signals.penalty - applied.astype(entropy.dtype) * entropy
        mean = masked_mean(jax.lax.stop_gradient(entropy), signals.mask).astype(applied.dtype)
        raised = jnp.minimum(state.coefficient + step, high)
        lowered = jnp.maximum(state.coefficient - step, low)
        moved = AdaptiveEntropyState(jnp.where(mean <= target, raised, lowered), mean)
        any_token = jnp.any(signals.mask)
        state = jax.tree.map(lambda new, old: jnp.where(any_token, new, old), moved, state)
        return replace(signals, penalty=penalty), state, {"entropy_coefficient": applied}

    return Transform(apply, init=init)


class ScheduledState(NamedTuple):
    """Updates with tokens so far, and the state of the part that is scheduled."""

    updates: Int[Array, ""]
    own: Any


@part(writes={"penalty", "term"})
def scheduled(part: Transform, schedule: Callable[[Array], ArrayLike]) -> Transform:
    """Scales the loss terms of a regularizer by a schedule: penalty' = penalty + s(n) · Δ.

    Δ is the part's addition to the penalty, and to the term. A batch without tokens is not counted.

    Args:
      part: adds to penalty and term only.
      schedule: s, of the number n of updates so far; one of optax, such as
        `optax.linear_schedule(1.0, 0.0, 500)`.
    Metrics: schedule/<part> (factor s(n) of the terms); those of the part.
    """

    def init(spec):
        return ScheduledState(jnp.zeros((), jnp.int32), part.init(spec))

    def apply(signals, context, state):
        changed, own, metrics = part.apply(signals, context, state.own)
        # optax mixes dtypes, which strict promotion refuses.
        with jax.numpy_dtype_promotion("standard"):
            factor = jnp.asarray(schedule(state.updates), signals.penalty.dtype)
        penalty = signals.penalty + factor * (changed.penalty - signals.penalty)
        term = signals.term + factor * (changed.term - signals.term)
        moved = state.updates + jnp.any(signals.mask).astype(jnp.int32)
        changed = replace(changed, penalty=penalty, term=term)
        return changed, ScheduledState(moved, own), {**metrics, f"schedule/{part.name}": factor}

    return replace(part, init=init, apply=apply)


@arguments_of(clipped_objective, "clip_low", "clip_high", "kl_coefficient", kl_coefficient=0.001)
def entropy_bonus(
    entropy_coefficient: EntropyCoefficient = 0.001,
    policy_coefficient: Finite = 1.0,
    target: Finite | None = None,
    coefficient_step: Positive = 0.005,
    coefficient_min: float = 0.0,
    coefficient_max: float = 1.0,
    anneal_updates: NonNegativeInt = 0,
    **clip: Any,
) -> Recipe:
    """Applies GRPO with the token mean, a bonus for entropy and a KL to the reference.

    Args:
      entropy_coefficient: weight of the entropy (c_H); with a target its initial value.
      policy_coefficient: weight of the policy loss (c_pg); with 0, and `kl_coefficient` and the
        optimizer's weight decay 0, only the entropy is trained.
      target: mean entropy that the coefficient follows, nats; None for a constant coefficient.
      coefficient_step: change of the coefficient per update (Δ).
      coefficient_min, coefficient_max: bounds of the coefficient.
      anneal_updates: updates over which the bonus falls linearly to 0; 0 if it is constant.
    Raises:
      ValueError: numbers of the controller without its target.
    """
    control = (coefficient_step, coefficient_min, coefficient_max)
    if target is None and control != (0.005, 0.0, 1.0):
        raise ValueError(
            "entropy_bonus: target must be a number with coefficient_step, coefficient_min and"
            f" coefficient_max to act, got None and {control}"
        )
    if target is None:
        bonus = constant_bonus(entropy_coefficient)
    else:
        bonus = adaptive_entropy_bonus(
            target, coefficient_step, coefficient_min, coefficient_max, entropy_coefficient
        )
    if anneal_updates:
        bonus = scheduled(bonus, optax.linear_schedule(1.0, 0.0, anneal_updates))
    objective = clipped_objective(
        transforms=[scale_weight(policy_coefficient)] if policy_coefficient != 1 else [],
        regularizers=[bonus] if entropy_coefficient or target is not None else [],
        **clip,
    )
    return Recipe(objective)


METHOD = Method(
    entropy_bonus,
    changes="regularizer",
    shown=LOSS_ON_BRACKETS,
    presets={
        "": {"hyperparameters": ("kl_coefficient=0",)},
        "brackets": {"hyperparameters": ("entropy_coefficient=0.05", "kl_coefficient=0")},
        # The first batches have no group of mixed rewards. The bonus is then all of the gradient,
        # and Adam, which knows no larger one yet, would make full steps of it.
        "arithmetic:hard": {"warmup_updates": 20},
    },
)
