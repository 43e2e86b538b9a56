"""Rewards of how likely the policy finds the reference answer behind a response's own reasoning."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.arguments import check_at_least, check_count, check_within
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum

__all__ = [
    "SpreadState",
    "answer_likelihoods",
    "debiased",
    "likely_answer_reward",
    "spread_floor",
]

Rows = Float[Array, "B"]
Tokens = Float[Array, "B T"]


class SpreadState(NamedTuple):
    """The running mean of how much the rewards of a group differ.

    Fields:
      steps: int32 [], steps that were seen.
      total: float64 [], sum of the mean deviations of the first steps.
      mean: float64 [], the running mean; 0 before the filter starts.
    """

    steps: np.ndarray
    total: np.ndarray
    mean: np.ndarray


def answer_likelihoods(logp: Tokens, mask: Bool[Array, "B T"]) -> dict[str, Rows]:
    """Four readings of the log-probs of the reference answer's tokens.

    mean_probability is RLPR's: one bad token does not kill it, as it does a product. A row without
    tokens has 0, and 1 where nothing is multiplied.

    Args:
      logp: of the answer's tokens.
      mask: which tokens those are.
    """
    return {
        "mean_probability": masked_mean(jnp.exp(logp), mask, axis=1),
        "probability": jnp.exp(masked_sum(logp, mask, axis=1)),
        "geometric_mean": jnp.exp(masked_mean(logp, mask, axis=1)),
        "mean_logp": masked_mean(logp, mask, axis=1),
    }


def debiased(likelihood: Rows, base: Rows) -> Rows:
    """max(0, p - b): by how much the reasoning makes the answer likelier than none does.

    Args:
      likelihood: p, behind the response's reasoning.
      base: b, of the first policy straight behind the question.
    """
    return jnp.maximum(likelihood - base, 0)


def likely_answer_reward(gain: Rows, form: Rows, share: float) -> Rows:
    """(1 - c) gain + c format.

    Args:
      gain: of `debiased`.
      form: 1 where the format is kept, else 0.
      share: c.
    """
    return (1 - share) * gain + share * form


class SpreadFloor(NamedTuple):
    """A filter of groups whose rewards differ too little, and its state.

    Fields:
      init: () -> state.
      observe: (state, group deviations of all drawn groups) -> state.
      floor: (state) -> the least deviation that is trained on; 0 before it starts.
    """

    init: Callable[[], SpreadState]
    observe: Callable[[SpreadState, np.ndarray], SpreadState]
    floor: Callable[[SpreadState], float]


def spread_floor(share: float = 0.5, keep: float = 0.99, start: int = 11) -> SpreadFloor:
    """Groups are dropped whose deviation is below β times its running mean over the steps.

    Before step `start` nothing is. The running mean begins as the mean over the steps before, and
    then keeps a share of itself; steps in which no group has a deviation do not count.

    Args:
      share: β, at least 0.
      keep: share of the old running mean.
      start: first step, from 0, whose groups are dropped; at least 1.
    Raises:
      ValueError: a negative share, keep outside [0, 1], or a start below 1.
    Source: RLPR, https://github.com/OpenBMB/RLPR.
    """
    check_at_least(0, "spread_floor", share=share)
    check_within(0, 1, "spread_floor", keep=keep)
    check_count(1, "spread_floor", start=start)

    def init():
        return SpreadState(np.int32(0), np.float64(0), np.float64(0))

    def observe(state, deviations):
        found = np.asarray(deviations, np.float64)
        found = found[np.isfinite(found)]
        if not len(found):
            return state
        level = float(found.mean())
        steps = state.steps + np.int32(1)
        if steps < start:
            return SpreadState(steps, state.total + level, state.mean)
        if steps == start:
            total = state.total + level
            return SpreadState(steps, total, np.float64(total / steps))
        return SpreadState(steps, state.total, keep * state.mean + (1 - keep) * level)

    def floor(state):
        return share * float(state.mean) if state.steps >= start else 0.0

    return SpreadFloor(init, observe, floor)
