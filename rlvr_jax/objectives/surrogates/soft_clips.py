"""Trust regions other than the hard clip of a token: gates, geometric means, kept gradients."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio, token_ratio
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Signals, replace
from rlvr_jax.types.hyperparameters import Bound, ClipHigh, ClipLow, DualClip, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "geometric_mean_clip",
    "geometric_mean_ratio",
    "ppo_cap",
    "sigmoid_gate",
    "sigmoid_gated",
    "trusted_log_ratio",
]


def sigmoid_gate(
    ratio: Float[Array, "..."], temperature: float | Float[Array, "..."]
) -> Float[Array, "..."]:
    """f(ρ) = (4/τ) σ(τ (ρ - 1)): slope 1 at ρ = 1, flat far from it; f(1) = 2/τ.

    Args:
      ratio: ρ, current over old probability.
      temperature: τ, positive; the slope falls faster with a larger one.
    """
    return 4 / temperature * jax.nn.sigmoid(temperature * (ratio - 1))


@part
def sigmoid_gated(positive: Positive, negative: Positive) -> Surrogate:
    """A soft trust region, -A f(ρ) with the gate f of `sigmoid_gate`; nothing is clipped.

    A step at ρ = 1 is that of -A ρ, and fades on both sides. The logarithm of ρ is clamped to ±20.

    Args:
      positive: τ of the tokens with A > 0.
      negative: τ of the others; larger than `positive`, pushes down fade first.
    Raises:
      ValueError: a temperature that is not positive.
    Source: Gao et al. 2025, https://arxiv.org/abs/2511.20347.
    """

    def prepare(signals, context):
        ratio = clamped_token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=ratio)

    def loss(signals, context):
        del context
        up = sigmoid_gate(signals.ratio, positive)
        down = sigmoid_gate(signals.ratio, negative)
        return -signals.advantage * jnp.where(signals.advantage > 0, up, down)

    return Surrogate(prepare, loss, never_holds_back)


def trusted_log_ratio(signals: Signals, log_ratio: Float[Array, "B T"]) -> Float[Array, "B T"]:
    """The log ratio, cut where the step would go on leaving the trust region; 0 where A = 0.

    c = min(d, log(1 + clip_high)) where A > 0, max(d, log(1 - clip_low)) where A < 0. A token that
    is cut has no gradient of its own.

    Args:
      signals: advantage and bounds.
      log_ratio: d = logp - old_logp.
    """
    highest = jnp.log1p(signals.clip_high)
    lowest = jnp.log1p(-jnp.minimum(signals.clip_low, 1))
    up = jnp.where(log_ratio <= highest, log_ratio, highest)
    down = jnp.where(log_ratio >= lowest, log_ratio, lowest)
    return jnp.where(signals.advantage > 0, up, jnp.where(signals.advantage < 0, down, 0))


def geometric_mean_ratio(
    log_ratio: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B"]:
    """exp of the mean log ratio of a rollout, with its whole gradient; 1 for an empty row."""
    return jnp.exp(masked_mean(log_ratio, mask, axis=1))


@part
def geometric_mean_clip(limit: Bound) -> Surrogate:
    """-A times the geometric mean of the rollout's token ratios, each cut on the side it is pushed.

    With c the `trusted_log_ratio` of each token for bounds ±κ on the logarithm: -A exp(mean_t c) at
    each token of the rollout. A token that is cut stops moving but still scales the others.

    Args:
      limit: κ, positive; inf cuts nothing.
    Raises:
      ValueError: limit not positive.
    Source: Zhao et al. 2025, https://arxiv.org/abs/2507.20673.
    """

    def prepare(signals, context):
        return replace(
            signals,
            ratio=token_ratio(context.stats.logp, context.old_logp, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, -jnp.expm1(-limit)),
            clip_high=jnp.full_like(signals.clip_high, jnp.expm1(limit)),
        )

    def loss(signals, context):
        log_ratio = trusted_log_ratio(signals, context.stats.logp - context.old_logp)
        ratio = geometric_mean_ratio(log_ratio, signals.mask)
        return -signals.advantage * ratio[:, None]

    return Surrogate(prepare, loss, never_holds_back)


@part
def ppo_cap(low: ClipLow, high: ClipHigh, dual: DualClip) -> Surrogate:
    """PPO's clip whose upper bound goes on training: the same value, another gradient.

    max(-A ρ, -A f(ρ)) with f = (1 + ε_high) ρ/sg(ρ) above the trust region: a token pushed up from
    there keeps the gradient of a ratio frozen at the bound. Below and inside, and for A < 0, it is
    `ppo_clip` with its dual clip.

    Args:
      low, high: half-widths of the trust region (ε_low, ε_high), at least 0.
      dual: c of the dual clip, above 1: at most -c A where A < 0.
    Raises:
      ValueError: a negative half-width, or dual not above 1.
    Source: Dong et al. 2025, https://arxiv.org/abs/2510.14545.
    """
    plain = ppo_clip(low, high, dual=dual)

    def loss(signals, context):
        logp, bound = context.stats.logp, 1 + signals.clip_high
        above = (signals.ratio > bound) & (signals.advantage > 0)
        # exp(logp - sg(logp)) is ρ/sg(ρ) = 1, also where ρ overflows.
        own = bound * jnp.exp(logp - jax.lax.stop_gradient(logp))
        return jnp.where(above, -signals.advantage * own, plain.loss(signals, context))

    return Surrogate(plain.prepare, loss, never_holds_back)


def never_holds_back(plan):
    if plan.updates_per_batch == 1:
        return "holds nothing back: with one update per batch the ratio is exactly 1."
    return None
