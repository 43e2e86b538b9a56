"""Policy losses of a token, before weights and penalties."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.objectives.algebra.parts import (
    Context,
    Surrogate,
    UpdatePlan,
    at_one_update,
    no_remark,
)
from rlvr_jax.objectives.statistics.ratios import Ratio, clip_to_trusted, token_ratio
from rlvr_jax.types import Signals, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip


def with_ratio(
    ratio: Ratio = token_ratio, low: float | None = None, high: float | None = None
) -> Callable[[Signals, Context], Signals]:
    """The `prepare` of a surrogate: sets the ratio, and the trust region if `low` is given."""

    def prepare(signals, context):
        own = ratio(context.stats.logp, context.old_logp, signals.mask)
        if low is None:
            return replace(signals, ratio=own)
        clip_low, clip_high = (jnp.full_like(signals.clip_low, x) for x in (low, high))
        return replace(signals, ratio=own, clip_low=clip_low, clip_high=clip_high)

    return prepare


@part
def ppo_clip(
    low: ClipLow, high: ClipHigh, ratio: Ratio = token_ratio, dual: DualClip | None = None
) -> Surrogate:
    """The pessimistic clipped loss, max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)).

    Examples:
      >>> from rlvr_jax.objectives import ppo_clip
      >>> ppo_clip(0.2, 0.28)
      ppo_clip(low=0.2, high=0.28)

    On a bound both branches are equal and have the gradient -A ∇ρ: the token is still trained.
    Transforms may replace the bounds token by token. The dual clip bounds the loss where A < 0 and
    ρ is huge: min(loss, -c A). `clipped_fraction` does not count it.

    Args:
      low: ε_low; 1 or more disables the lower clip.
      high: ε_high.
      ratio: ρ, one of `rlvr_jax.objectives.statistics.ratios`.
      dual: c; None: no dual clip.
    Sources: Schulman et al. 2017, https://arxiv.org/abs/1707.06347; Ye et al. 2020,
      https://arxiv.org/abs/1912.09729 (dual clip).
    """

    def loss(signals, context):
        del context
        # Where the bound decides, an infinite ratio enters neither the loss nor a product 0 · ρ.
        bound = 1 + signals.clip_high
        above = (signals.advantage >= 0) & (signals.ratio > bound)
        unclipped = -signals.advantage * jnp.where(above, bound, signals.ratio)
        values = jnp.maximum(unclipped, -signals.advantage * clip_to_trusted(signals))
        if dual is None:
            return values
        highest = -dual * signals.advantage
        return jnp.where((signals.advantage < 0) & (values > highest), highest, values)

    remark = at_one_update("never clips: with one update per batch the ratio is exactly 1.")
    return Surrogate(with_ratio(ratio, low, high), loss, remark)


@part
def importance_weighted(ratio: Ratio = token_ratio) -> Surrogate:
    """The unclipped loss -A ρ: unbiased off-policy, with unbounded variance.

    Args:
      ratio: ρ, one of `rlvr_jax.objectives.statistics.ratios`.
    """
    return Surrogate(with_ratio(ratio), unclipped_loss)


def unclipped_loss(signals: Signals, context: Context) -> Array:
    """-A ρ at every token."""
    del context
    return -signals.advantage * signals.ratio


@part
def weighted_reinforce(
    low: ClipLow = jnp.inf, high: ClipHigh = jnp.inf, ratio: Ratio = token_ratio
) -> Surrogate:
    """The policy gradient with a capped importance weight: -w A logp, w without gradient.

    w = sg(clip(ρ, 1 - ε_low, 1 + ε_high)). Inside the bounds the gradient is that of -A ρ. Outside,
    the gradient has the weight of the bound, for both signs of A; `ppo_clip` has none there. The
    value of the loss has no meaning. Transforms may replace the bounds token by token.

    Args:
      low: ε_low; with 1 or more, small weights do not change.
      high: ε_high; inf: no cap.
      ratio: ρ, one of `rlvr_jax.objectives.statistics.ratios`.
    Source: MiniMax 2025, https://arxiv.org/abs/2506.13585.
    """

    def loss(signals, context):
        weight = jax.lax.stop_gradient(clip_to_trusted(signals))
        return -weight * signals.advantage * context.stats.logp

    idle = at_one_update("caps nothing: with one update per batch the ratio is exactly 1.")
    remark = idle if low < 1 or high < jnp.inf else no_remark
    return Surrogate(with_ratio(ratio, low, high), loss, remark)


@part
def reinforce(corrected: bool = False) -> Surrogate:
    """The plain policy gradient, -A logp: the ratio is reported, but does not enter the loss.

    Args:
      corrected: advantages or weights correct for the age of the rollouts, so no remark is made.
    Source: Williams 1992, https://doi.org/10.1007/BF00992696.
    """

    def loss(signals, context):
        return -signals.advantage * context.stats.logp

    def remark(plan):
        if plan.updates_per_batch > 1 and not corrected:
            return (
                "reinforce() does not correct for the age of the rollouts: of"
                f" {plan.updates_per_batch} updates per batch only the first is on-policy."
            )
        return None

    return Surrogate(with_ratio(), loss, remark)


@part
def no_policy_loss() -> Surrogate:
    """No policy gradient: only the regularizers contribute to the loss. The ratio is reported."""

    def loss(signals, context):
        del context
        return jnp.zeros_like(signals.advantage)

    return Surrogate(with_ratio(fixed_ratio), loss)


def fixed_ratio(logp: Array, old_logp: Array, mask: Array) -> Array:
    """The token ratio without gradient, for reports."""
    return jax.lax.stop_gradient(token_ratio(logp, old_logp, mask))


never_holds_back: Callable[[UpdatePlan], str | None] = at_one_update(
    "holds nothing back: with one update per batch the ratio is exactly 1."
)
