"""BAPO: bounds of the ratio that are searched anew, until pushes up balance pushes down.

Xi et al. 2025, "BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy
Optimization with Adaptive Clipping", https://arxiv.org/abs/2510.18927

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    b    = Σ_{A ≥ 0} min(ρ, c_high) A / (Σ_{A < 0} max(ρ, c_low) |A| + 1e-8)
    loss = Σ max(-A ρ, -A clip(ρ, c_low, c_high)) / Σ n_i, at most -3 A where A < 0

From its start, c_low goes up while b is below the target, then c_high; log ρ is clamped to ±20. The
defaults are those of the authors' configuration: target 1 for the quotient b. The paper states its
target as a share b / (1 + b), 0.4 to 0.5, with ranges [0.6, 0.9] and [1.2, 3]. As in the authors'
code, silenced tokens count in b, so the first search, once it moves, always runs to its end.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.masked import masked_sum
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Epsilon, NonNegative
from rlvr_jax.types.parts import part

NO_PUSH_DOWN = 1e9  # stands for the infinite balance of a batch without negative advantages


class Search(NamedTuple):
    """Where a bound of the ratio starts, where it may end, and by how much it moves at a time."""

    first: float
    last: float
    step: float

    def candidates(self) -> list[float]:
        """All values of the bound, first to last; steps add up, and the last one ends the search.

        Rounding may leave a step of no size before the end, as it does in the authors' loop.
        """
        values = [self.first]
        while values[-1] < self.last:
            values.append(min(values[-1] + self.step, self.last))
        return values


class Bounds(NamedTuple):
    """What a search gives: the bounds of the ratio, the balance before and after, and its steps."""

    low: Float[Array, ""]
    high: Float[Array, ""]
    balance_first: Float[Array, ""]
    balance_last: Float[Array, ""]
    steps: Int[Array, ""]


def balanced_bounds(
    advantage: Float[Array, "B T"],
    ratio: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    low: Search,
    high: Search,
    target: float,
    epsilon: float,
) -> Bounds:
    """Searches bounds of the ratio under which the pushes up are `target` times those down.

    Over the tokens on the mask, for bounds c_low and c_high:

        up = Σ_{A ≥ 0} min(ρ, c_high) A,  down = Σ_{A < 0} max(ρ, c_low) |A|,  b = up / (down + ε)

    First c_low is raised until b reaches the target or c_low its last value, then c_high. A balance
    without any push down is infinite, and given as 1e9.

    A token below c_low counts with c_low, though the clip silences it: raising c_low raises `down`,
    so the first search, once it moves, always runs to its end.

    Args:
      advantage: A, without gradient.
      ratio: ρ, without gradient.
      mask: the tokens that count.
      low, high: the searches of c_low and c_high.
      target: wanted balance.
      epsilon: ε, added to the divisor.
    """
    lows = jnp.asarray(low.candidates(), ratio.dtype)
    highs = jnp.asarray(high.candidates(), ratio.dtype)

    def push_up(bound):
        return masked_sum(jnp.minimum(ratio, bound) * advantage, mask & (advantage >= 0), axis=1)

    def push_down(bound):
        return masked_sum(jnp.maximum(ratio, bound) * -advantage, mask & (advantage < 0), axis=1)

    # Bound after bound, for side by side each would fill an array of all tokens; row by row, so
    # that devices need not speak to each other at every bound.
    up = jnp.sum(jax.lax.map(push_up, highs), axis=1)
    down = jnp.sum(jax.lax.map(push_down, lows), axis=1)

    def balance(up, down):
        return jnp.where(down > 0, up / (down + epsilon), NO_PUSH_DOWN)

    along_low = balance(up[0], down)
    low_index = _first_at_least(along_low, target)
    along_high = balance(up, down[low_index])
    high_index = _first_at_least(along_high, target)
    return Bounds(
        low=lows[low_index],
        high=highs[high_index],
        balance_first=along_low[0],
        balance_last=along_high[high_index],
        steps=low_index + high_index,
    )


@part(reads={"logp", "batch_statistics"}, writes={"clip_high", "clip_low"})
def balance_signs(
    low: Search, high: Search, target: NonNegative, epsilon: NonNegative = 1e-8
) -> Transform:
    """Sets the bounds of the ratio for the whole batch by `balanced_bounds`.

    The logarithm of the ratio that is measured is clamped to ±20.

    Args:
      low, high, target, epsilon: as in `balanced_bounds`; the bounds are those of the ratio itself.
    Metrics: bound_low, bound_high, balance_first, balance_last, search_steps.
    Raises:
      ValueError: a search that does not go up, or in more than 1000 steps; a low bound outside
        [0, 1], or a high one below 1; a negative target or epsilon.
    """
    for name, search in (("low", low), ("high", high)):
        if not (search.first <= search.last and search.last - search.first <= 1000 * search.step):
            raise ValueError(
                f"balance_signs: {name} must go up in at most 1000 steps, got {tuple(search)}"
            )
    if not 0 <= low.first <= low.last <= 1 <= high.first:
        raise ValueError(
            "balance_signs: low must lie in [0, 1] and high not below 1, got"
            f" {tuple(low)} and {tuple(high)}"
        )

    def apply(signals, context, state):
        log_ratio = jax.lax.stop_gradient(context.stats.logp - context.old_logp)
        ratio = jnp.exp(jnp.clip(log_ratio, -20, 20))
        found = balanced_bounds(signals.advantage, ratio, signals.mask, low, high, target, epsilon)
        signals = replace(
            signals,
            clip_low=jnp.full_like(signals.clip_low, 1 - found.low),
            clip_high=jnp.full_like(signals.clip_high, found.high - 1),
        )
        metrics = {
            "bound_low": found.low,
            "bound_high": found.high,
            "balance_first": found.balance_first,
            "balance_last": found.balance_last,
            "search_steps": found.steps.astype(ratio.dtype),
        }
        return signals, state, metrics

    return apply


def _first_at_least(values, target):
    """Index of the first value that reaches the target; the last index if none does."""
    reached = values >= target
    return jnp.where(jnp.any(reached), jnp.argmax(reached), values.shape[0] - 1)


def bapo(
    low: float = 0.6,
    low_last: float = 0.8,
    low_step: float = 0.05,
    high: float = 1.2,
    high_last: float = 2.0,
    high_step: float = 0.05,
    target: float = 1.0,
    dual: float = 3.0,
    epsilon: Epsilon = 1e-6,
    balance_epsilon: float = 1e-8,
) -> Recipe:
    """A dual-clipped ratio on the token mean, with bounds found by a search in every batch.

    Args:
      low, low_last, low_step: first and last value of the lower bound of the ratio, and its step.
      high, high_last, high_step: the same for the upper bound.
      target: wanted quotient of pushes up and down (b).
      dual: bound of the loss where A < 0, in units of -A.
      balance_epsilon: added to the pushes down.
    """
    search = balance_signs(
        Search(low, low_last, low_step), Search(high, high_last, high_step), target, balance_epsilon
    )
    return Recipe(
        objective=clipped_objective(
            clip_low=1 - low,
            clip_high=high - 1,
            advantage=group_normalized(epsilon),
            transforms=[search],
            ratio=clamped_token_ratio,
            dual_clip=dual,
        )
    )


METHOD = Method(
    bapo,
    "BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy Optimization"
    " with Adaptive Clipping",
    "https://arxiv.org/abs/2510.18927",
    changes="surrogate",
    left_out="the replay of stale and partial rollouts that it was made for",
    reports=(
        "BP-Math on AIME24 and AIME25: 70.8 and 62.5 at 7B, 87.1 and 80.0 at 32B; stable on "
        "replayed and partial rollouts"
    ),
    traps=(
        "the lower search cannot reach its target, it runs to its end; the paper's 0.4 to 0.5 is a "
        "share, here the target is a quotient; on fresh rollouts all ratios are 1 and bounds do "
        "nothing"
    ),
)
