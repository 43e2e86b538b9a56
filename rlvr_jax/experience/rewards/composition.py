"""Rewards composed of rewards: sums, bounds, columns of the task's rewards."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.experience.rewards.outcomes import Reward
from rlvr_jax.experience.rewards.parts import Shaping, as_shaping, judged_mean, shaping
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Finite, NonNegativeInt
from rlvr_jax.types.parts import part

__all__ = ["bounded", "column", "total"]

Part = Reward | Shaping


@part
def total(parts: Mapping[str, Part], weights: Mapping[str, Finite] | None = None) -> Shaping:
    """R = Σ_k w_k r_k; each part is a metric before its weight.

    Args:
      parts: r, by the name of the metric.
      weights: w, of some parts; the others have 1. A part of weight 0 is a metric only, and NaN in
        it does not change the reward.
    Metrics: reward/<name> (mean of each part before its weight); those of the parts.
    Raises:
      ValueError: no parts; weights of other parts.
    """
    weights = dict(weights or {})
    if not parts or not weights.keys() <= parts.keys():
        raise ValueError(
            f"total: weights must be of the parts {list(parts)}, at least one, got {list(weights)}"
        )
    factors = [float(weights.get(name, 1.0)) for name in parts]

    def add(values):
        kind = values[0].dtype
        terms = [
            factor * x.astype(kind) for factor, x in zip(factors, values, strict=True) if factor
        ]
        return sum(terms, start=jnp.zeros_like(values[0]))

    return combined(parts, add)


@part
def bounded(reward: Part, low: float = -jnp.inf, high: float = jnp.inf) -> Shaping:
    """The reward within [low, high].

    Raises:
      ValueError: low above high, or NaN.
    """
    if not low <= high:
        raise ValueError(f"bounded: low must be at most high {high:g}, got {low}")
    own = as_shaping(reward)

    def apply(rollouts, state, moment):
        value, state, metrics = own.apply(rollouts, state, moment)
        return jnp.clip(value, low, high), state, metrics

    return replace(own, apply=apply)


@part
def column(number: NonNegativeInt) -> Shaping:
    """One of the task's rewards, `component_rewards[:, number]`."""
    return shaping(
        lambda rollouts: rollouts.records["component_rewards"][:, number], columns=number + 1
    )


def combined(parts: Mapping[str, Part], combine: Callable[[list[Array]], Any]) -> Shaping:
    """Several shapings as one, each with its part of the state and its own key.

    Args:
      combine: (values of the parts) -> the reward [B], or a pair as the reward of `shaping`.
    """
    own = [as_shaping(one) for one in parts.values()]

    def init(prompts):
        return tuple(one.init(prompts) for one in own)

    def apply(rollouts, state, moment):
        values, states, metrics = [], [], {}
        for number, (name, one) in enumerate(zip(parts, own, strict=True)):
            own_state = state[number] if state else ()
            now = moment and moment._replace(key=jax.random.fold_in(moment.key, number))
            value, after, found = one.apply(rollouts, own_state, now)
            values.append(value)
            states.append(after)
            metrics |= {**found, f"reward/{name}": judged_mean(value, rollouts)}
        value = combine(values)
        value, more = value if isinstance(value, tuple) else (value, {})
        metrics |= {name: judged_mean(own, rollouts) for name, own in more.items()}
        return value, tuple(states), metrics

    reads = frozenset().union(*(one.reads for one in own))
    return Shaping(apply, init, reads, max(one.columns for one in own))
