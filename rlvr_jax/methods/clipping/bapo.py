"""BAPO: searches in every batch the ratio bounds that balance positive and negative updates.

Xi et al. 2025, "BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy
Optimization with Adaptive Clipping", https://arxiv.org/abs/2510.18927

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    b    = Σ_{A ≥ 0} min(ρ, c_high) A / (Σ_{A < 0} max(ρ, c_low) |A| + 1e-8)
    loss = Σ max(-A ρ, -A clip(ρ, c_low, c_high)) / Σ n_i, at most -3 A where A < 0

c_low rises from its first value while b is below the target, then c_high does. log ρ is clamped to
±20. A token below c_low counts in b with c_low, although the clip removes its gradient. Raising
c_low therefore lowers b: if the first search begins, it always ends at `low_last`, as in their
code.

The defaults are those of the authors' configuration: target 1 for the quotient b. The paper states
its target as a fraction b / (1 + b) of 0.4 to 0.5, with ranges [0.6, 0.9] and [1.2, 3].

Left out: the replay of stale and partial rollouts, for which the paper made it.
Reports: BP-Math on AIME24 and AIME25, in %: 70.8 and 62.5 at 7B, 87.1 and 80.0 at 32B. Training is
stable on replayed and partial rollouts.
Traps: The paper's target is a fraction, here it is a quotient. On new rollouts all ratios are 1,
and the bounds have no effect.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Transform, clamped_token_ratio, clipped_objective, masked_sum, part
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, replace
from rlvr_jax.types.hyperparameters import AtLeastOne, DualClip, Epsilon, NonNegative, Unit

NO_PUSH_DOWN = 1e9  # in place of the infinite balance of a batch without negative advantages


class Search(NamedTuple):
    """First and last value of a bound of the ratio, and the step between values."""

    first: float
    last: float
    step: float

    def candidates(self) -> list[float]:
        """All values of the bound; steps add up, and the last value ends the search.

        Rounding may make the last step almost 0, as in the authors' loop.
        """
        values = [self.first]
        while values[-1] < self.last:
            values.append(min(values[-1] + self.step, self.last))
        return values


@part(reads={"logp", "batch_statistics"}, writes={"clip_high", "clip_low"})
def balance_signs(
    low: Search, high: Search, target: NonNegative, epsilon: NonNegative = 1e-8
) -> Transform:
    """Sets the bounds of the ratio to the first ones of the search with b ≥ target.

    Args:
      low, high: searches of c_low and c_high, in at most 1000 steps.
      target: quotient of positive and negative updates at which the search ends (b).
      epsilon: added to the denominator of b.
    Metrics: bound_low, bound_high (bounds of the ratio), balance_first, balance_last (b before and
      after the search; 1e9 without any push down), search_steps (steps of both searches).
    """
    for name, search in (("low", low), ("high", high)):
        if not (search.first <= search.last and search.last - search.first <= 1000 * search.step):
            raise ValueError(
                f"balance_signs: {name} must go up in at most 1000 steps, got {tuple(search)}"
            )
    if not 0 <= low.first <= low.last <= 1 <= high.first:
        raise ValueError(
            "balance_signs: low must be in [0, 1] and high at least 1, got"
            f" {tuple(low)} and {tuple(high)}"
        )

    def apply(signals, context, state):
        log_ratio = jax.lax.stop_gradient(context.stats.logp - context.old_logp)
        ratio = jnp.exp(jnp.clip(log_ratio, -20, 20))
        advantage, mask = signals.advantage, signals.mask
        lows = jnp.asarray(low.candidates(), ratio.dtype)
        highs = jnp.asarray(high.candidates(), ratio.dtype)

        def push_up(bound):
            pushes = jnp.minimum(ratio, bound) * advantage
            return masked_sum(pushes, mask & (advantage >= 0), axis=1)

        def push_down(bound):
            pushes = jnp.maximum(ratio, bound) * -advantage
            return masked_sum(pushes, mask & (advantage < 0), axis=1)

        def balance(up, down):
            return jnp.where(down > 0, up / (down + epsilon), NO_PUSH_DOWN)

        # One bound at a time, because each fills an array of all tokens. Sums are per row first, so
        # that devices communicate once and not at every bound.
        up = jnp.sum(jax.lax.map(push_up, highs), axis=1)
        down = jnp.sum(jax.lax.map(push_down, lows), axis=1)
        along_low = balance(up[0], down)
        low_index = _first_at_least(along_low, target)
        along_high = balance(up, down[low_index])
        high_index = _first_at_least(along_high, target)
        bound_low, bound_high = lows[low_index], highs[high_index]
        signals = replace(
            signals,
            clip_low=jnp.full_like(signals.clip_low, 1 - bound_low),
            clip_high=jnp.full_like(signals.clip_high, bound_high - 1),
        )
        metrics = {
            "bound_low": bound_low,
            "bound_high": bound_high,
            "balance_first": along_low[0],
            "balance_last": along_high[high_index],
            "search_steps": (low_index + high_index).astype(ratio.dtype),
        }
        return signals, state, metrics

    return apply


def _first_at_least(values, target):
    """Index of the first value that reaches the target; the last index if none does."""
    reached = values >= target
    return jnp.where(jnp.any(reached), jnp.argmax(reached), values.shape[0] - 1)


def bapo(
    low: Unit = 0.6,
    low_last: Unit = 0.8,
    low_step: NonNegative = 0.05,
    high: AtLeastOne = 1.2,
    high_last: AtLeastOne = 2.0,
    high_step: NonNegative = 0.05,
    target: NonNegative = 1.0,
    dual: DualClip = 3.0,
    epsilon: Epsilon = 1e-6,
    balance_epsilon: NonNegative = 1e-8,
) -> Recipe:
    """Applies a dual-clipped ratio with the token mean; a search in every batch finds its bounds.

    Args:
      low, low_last, low_step: first and last lower bound of the ratio (c_low), and the step.
      high, high_last, high_step: first and last upper bound of the ratio (c_high), and the step.
      target: quotient of positive and negative updates (b).
      balance_epsilon: added to the denominator of b.
    """
    search = balance_signs(
        Search(low, low_last, low_step), Search(high, high_last, high_step), target, balance_epsilon
    )
    objective = clipped_objective(
        1 - low,
        high - 1,
        epsilon=epsilon,
        transforms=[search],
        ratio=clamped_token_ratio,
        dual_clip=dual,
    )
    return Recipe(objective)


METHOD = Method(bapo, changes="surrogate", shown=LOSS_ON_BRACKETS)
