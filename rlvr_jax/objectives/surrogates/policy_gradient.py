"""Policy losses of a token, before weights and penalties."""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.statistics.ratios import Ratio, clip_to_trusted, token_ratio
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow
from rlvr_jax.types.parts import part


@part
def ppo_clip(
    low: ClipLow, high: ClipHigh, ratio: Ratio = token_ratio, dual: float | None = None
) -> Surrogate:
    """The pessimistic clipped loss, max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)).

    On a bound both branches are equal and have the gradient -A ∇ρ: the token is still trained.
    Transforms may replace the bounds token by token. The dual clip bounds what a negative
    advantage can cost where ρ is huge: min(loss, -c A) where A < 0. It is not part of
    `clipped_share`.

    Args:
      low: half-width below 1 (ε_low), at least 0; with 1 or more nothing is clipped from below.
      high: half-width above 1 (ε_high), at least 0.
      ratio: ρ, one of `rlvr_jax.objectives.statistics.ratios`.
      dual: c of the dual clip, above 1; None for none.
    Raises:
      ValueError: a negative half-width, or dual not above 1.
    Sources: Schulman et al. 2017, https://arxiv.org/abs/1707.06347; Ye et al. 2020,
      https://arxiv.org/abs/1912.09729 (dual clip).
    """
    if dual is not None and not dual > 1:
        raise ValueError(f"ppo_clip: dual must be above 1 or None, got {dual}")

    def prepare(signals, context):
        return replace(
            signals,
            ratio=ratio(context.stats.logp, context.old_logp, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, low),
            clip_high=jnp.full_like(signals.clip_high, high),
        )

    def loss(signals, context):
        del context
        # Where the bound decides, an infinite ratio has no part in the loss, nor in 0 · ρ.
        bound = 1 + signals.clip_high
        above = (signals.advantage >= 0) & (signals.ratio > bound)
        unclipped = -signals.advantage * jnp.where(above, bound, signals.ratio)
        values = jnp.maximum(unclipped, -signals.advantage * clip_to_trusted(signals))
        if dual is None:
            return values
        highest = -dual * signals.advantage
        return jnp.where((signals.advantage < 0) & (values > highest), highest, values)

    def remark(plan):
        if plan.updates_per_batch == 1:
            return "never clips: with one update per batch the ratio is exactly 1."
        return None

    return Surrogate(prepare, loss, remark)


@part
def importance_weighted(ratio: Ratio = token_ratio) -> Surrogate:
    """The unclipped loss -A ρ: unbiased off-policy, of unbounded variance.

    Args:
      ratio: ρ, one of `rlvr_jax.objectives.statistics.ratios`.
    """

    def prepare(signals, context):
        return replace(signals, ratio=ratio(context.stats.logp, context.old_logp, signals.mask))

    def loss(signals, context):
        del context
        return -signals.advantage * signals.ratio

    return Surrogate(prepare, loss)


@part
def reinforce(corrected: bool = False) -> Surrogate:
    """The plain policy gradient, -A logp: no ratio enters the loss, it is only reported.

    Args:
      corrected: advantages or weights allow for the age of the rollouts, of which nothing is said
        then.
    Source: Williams 1992, https://doi.org/10.1007/BF00992696.
    """

    def prepare(signals, context):
        own = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=own)

    def loss(signals, context):
        return -signals.advantage * context.stats.logp

    def remark(plan):
        if plan.updates_per_batch > 1 and not corrected:
            return (
                "reinforce() does not correct for the age of the rollouts: of"
                f" {plan.updates_per_batch} updates per batch only the first is on-policy."
            )
        return None

    return Surrogate(prepare, loss, remark)


@part
def no_policy_loss() -> Surrogate:
    """No policy gradient: the loss is what the regularizers make it. The ratio is reported."""

    def prepare(signals, context):
        own = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=jax.lax.stop_gradient(own))

    def loss(signals, context):
        del context
        return jnp.zeros_like(signals.advantage)

    return Surrogate(prepare, loss)


def never_holds_back(plan):
    """The remark of a surrogate whose bound cannot act, if there is one update per batch."""
    if plan.updates_per_batch == 1:
        return "holds nothing back: with one update per batch the ratio is exactly 1."
    return None
