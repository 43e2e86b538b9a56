"""Terms added to the loss of every token: entropy bonuses and divergences from a reference.

They follow the aggregation of the loss: under `token_mean` a bonus is the mean entropy of the
tokens, under other aggregations it is weighted as they weigh tokens.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.statistics.divergences import Divergence, k3
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Signals, replace
from rlvr_jax.types.hyperparameters import Finite, NonNegative, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "AdaptiveEntropyState",
    "adaptive_entropy_bonus",
    "entropy_bonus",
    "kl_penalty",
    "scheduled",
    "statistic_penalty",
    "statistic_term",
]


@part(writes={"penalty"})
def statistic_penalty(coefficient: Finite, statistic: str) -> Transform:
    """Adds a statistic of the policy to the loss, with its gradient: penalty' = penalty + c · s.

    With "kl", "reverse_kl" or "js" it is an exact divergence from a second policy, summed over the
    vocabulary, where `kl_penalty` has an estimate at the sampled token.

    Args:
      coefficient: c.
      statistic: field of `TokenStats` of shape [B, T].
    Reads: the statistic. Writes: penalty. Metrics: statistic_penalty/<statistic>, its mean.
    Raises:
      ValueError: coefficient not finite.
    """

    def apply(signals, context, state):
        values = getattr(context.stats, statistic)
        signals = replace(signals, penalty=signals.penalty + coefficient * values)
        metrics = {f"statistic_penalty/{statistic}": masked_mean(values, signals.mask)}
        return signals, state, metrics

    return Transform(apply, reads={statistic})


@part(writes={"term"})
def statistic_term(coefficient: Finite, statistic: str) -> Transform:
    """Adds the token mean of a statistic to the loss, whatever the aggregation: term + c · mean s.

    Args:
      coefficient: c.
      statistic: field of `TokenStats` of shape [B, T].
    Reads: the statistic, mask. Writes: term. Metrics: statistic_term/<statistic>, the mean.
    Raises:
      ValueError: coefficient not finite.
    """

    def apply(signals, context, state):
        mean = masked_mean(getattr(context.stats, statistic), signals.mask)
        signals = replace(signals, term=signals.term + coefficient * mean)
        return signals, state, {f"statistic_term/{statistic}": mean}

    return Transform(apply, reads={statistic})


@part(reads={"entropy"}, writes={"penalty"})
def entropy_bonus(coefficient: Finite) -> Transform:
    """Rewards entropy with a constant coefficient: penalty' = penalty - c · H.

    Args:
      coefficient: c; negative values sharpen the policy.
    Reads: entropy. Writes: penalty. Metrics: none.
    Raises:
      ValueError: coefficient not finite.
    Source: Williams and Peng 1991, https://doi.org/10.1080/09540099108946587.
    """

    def apply(signals, context, state):
        penalty = signals.penalty - coefficient * context.stats.entropy
        return replace(signals, penalty=penalty), state, {}

    return apply


class AdaptiveEntropyState(NamedTuple):
    """The coefficient of `adaptive_entropy_bonus`, and the mean entropy it saw last (nats)."""

    coefficient: Float[Array, ""]
    last_entropy: Float[Array, ""]


@part(writes={"penalty"})
def adaptive_entropy_bonus(
    target: Finite, step: Positive, low: float = 0.0, high: float = 1.0, initial: float = 0.0
) -> Transform:
    """An entropy bonus that acts while the entropy is at or below a target.

    With H̄ the mean entropy of the tokens: the coefficient applied is c if the H̄ of the last update
    was at most `target`, else 0 (also at the first update); then c' = min(c + step, high) if H̄ ≤
    target, else max(c - step, low). A batch without tokens changes nothing.

    Args:
      target: wanted mean entropy, nats.
      step: change of the coefficient per update, positive.
      low, high: bounds of the coefficient.
      initial: coefficient at the start, within the bounds.
    Reads: entropy, mask. Writes: penalty. Metrics: entropy_coefficient (the applied one).
    Raises:
      ValueError: target not finite, step not positive, or initial outside [low, high].
    Source: He et al. 2025, https://arxiv.org/abs/2505.22312.
    """
    if not low <= initial <= high:
        raise ValueError(
            f"adaptive_entropy_bonus: initial must be in [{low}, {high}], got {initial}"
        )

    def init(spec):
        del spec
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

    return Transform(apply, init=init, reads={"entropy", "batch_statistics"})


@part(writes={"penalty"})
def kl_penalty(
    coefficient: NonNegative,
    estimator: Divergence = k3,
    weight: Callable[[Signals, Context], Array] | None = None,
    reads: Iterable[str] = (),
) -> Transform:
    """Keeps the policy near the frozen reference: penalty' = penalty + β · estimator.

    Args:
      coefficient: β, at least 0.
      estimator: one of `rlvr_jax.objectives.statistics.divergences`; they differ in bias and
        gradient.
      weight: (signals, context) -> [B, T] or [B, 1], a factor on β without gradient; None for 1.
      reads: optional records of the rollouts that the weight reads.
    Reads: logp, old_logp, reference_logp. Writes: penalty. Metrics: kl_penalty/<estimator>, its
      mean over the tokens before the weight.
    Raises:
      ValueError: a negative coefficient.
    Source: Shao et al. 2024, https://arxiv.org/abs/2402.03300.
    """

    def apply(signals, context, state):
        divergence = estimator(
            context.stats.logp, context.rollouts.reference_logp, context.old_logp
        )
        mean = masked_mean(divergence, signals.mask)
        if weight is not None:
            divergence = jax.lax.stop_gradient(weight(signals, context)) * divergence
        signals = replace(signals, penalty=signals.penalty + coefficient * divergence)
        return signals, state, {f"kl_penalty/{estimator.__name__}": mean}

    return Transform(apply, reads={"logp", "reference_logp", *reads})


class ScheduledState(NamedTuple):
    """Updates with tokens that a `scheduled` part has seen, and its own state."""

    updates: Int[Array, ""]
    own: Any


@part(writes={"penalty", "term"})
def scheduled(part: Transform, schedule: Callable[[Array], ArrayLike]) -> Transform:
    """Scales what a regularizer adds to the loss by a schedule: penalty' = penalty + s(n) · Δ.

    Δ is what the part would have added to the penalty, and to the term. A batch without tokens
    does not count.

    Args:
      part: adds to penalty and term only.
      schedule: s, of the number n of updates so far; one of optax, such as
        `optax.linear_schedule(1.0, 0.0, 500)`.
    Reads: what the part reads. Writes: penalty, term. Metrics: the part's, and
      schedule/<part>, s(n).
    """
    name = part.label.partition("(")[0]

    def init(spec):
        return ScheduledState(jnp.zeros((), jnp.int32), part.init(spec))

    def apply(signals, context, state):
        changed, own, metrics = part.apply(signals, context, state.own)
        # optax mixes dtypes, which a caller who is strict about promotion would be refused.
        with jax.numpy_dtype_promotion("standard"):
            factor = jnp.asarray(schedule(state.updates), signals.penalty.dtype)
        penalty = signals.penalty + factor * (changed.penalty - signals.penalty)
        term = signals.term + factor * (changed.term - signals.term)
        moved = state.updates + jnp.any(signals.mask).astype(jnp.int32)
        changed = replace(changed, penalty=penalty, term=term)
        return changed, ScheduledState(moved, own), {**metrics, f"schedule/{name}": factor}

    return replace(part, init=init, apply=apply)
