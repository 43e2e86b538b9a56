"""Importance ratios, and the trust region around 1.

A ratio is a function (logp, old_logp, mask) -> [B, T] with gradient in `logp`; 1 off the mask.
Only ratios with "clamped" in their name are clamped. The gradient is 0 where a loss does not depend
on a ratio, even if that ratio overflows.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Mask, Signals, Values

Ratio = Callable[[Array, Array, Array], Array]
"""The ratio of a token: (logp [B, T], old_logp [B, T], mask [B, T]) -> [B, T]."""


def token_ratio(logp: Values, old_logp: Values, mask: Mask) -> Values:
    """The importance ratio of each token, ρ_it = exp(logp_it - old_logp_it)."""
    return guarded_exp(jnp.where(mask, logp - old_logp, 0))


def clamped_token_ratio(logp: Values, old_logp: Values, mask: Mask) -> Values:
    """The token ratio with its logarithm clamped to ±20: finite in float32, flat beyond."""
    return jnp.exp(jnp.clip(jnp.where(mask, logp - old_logp, 0), -20, 20))


def sequence_ratio(logp: Values, old_logp: Values, mask: Mask) -> Values:
    """The ratio of a whole rollout, s_i, at each of its tokens, with the gradient s_i ∇logp_it.

    A mean over the tokens of the rollout then has the gradient of s_i.
    """
    value = jnp.exp(masked_mean(logp - old_logp, mask, axis=1))[:, None]
    own = jnp.exp(jnp.where(mask, logp - jax.lax.stop_gradient(logp), 0))
    return jnp.where(mask, jax.lax.stop_gradient(value) * own, 1)


def on_policy_ratio(logp: Values, old_logp: Values, mask: Mask) -> Values:
    """The constant 1 with the gradient of logp: a policy gradient with a loss of value -A.

    It does not correct for the age of the rollouts.
    """
    del old_logp
    return jnp.exp(jnp.where(mask, logp - jax.lax.stop_gradient(logp), 0))


def clip_to_trusted(signals: Signals) -> Float[Array, "B T"]:
    """The ratio clipped to [1 - clip_low, 1 + clip_high]; the gradient is 1 inside and on a bound.

    `jnp.clip` halves the gradient on a bound; the published implementations do not.
    """
    low, high = 1 - signals.clip_low, 1 + signals.clip_high
    inside = (signals.ratio >= low) & (signals.ratio <= high)
    bound = jax.lax.stop_gradient(jnp.clip(signals.ratio, low, high))
    return jnp.where(inside, signals.ratio, bound)


def is_clipped(signals: Signals) -> Bool[Array, "B T"]:
    """Tokens where the bound decides the value of the loss: -A clip(ρ) > -A ρ.

    There PPO's clip passes no gradient; a cap of the ratio (`ppo_cap`, `weighted_reinforce`) passes
    it.
    """
    clipped = -signals.advantage * clip_to_trusted(signals)
    return signals.mask & (clipped > -signals.advantage * signals.ratio)


def guarded_exp(x: Array) -> Array:
    """exp(x) with gradient 0 where that of the result is 0; otherwise 0 · overflow would be NaN."""
    return _guarded_exp(x)


@jax.custom_vjp
def _guarded_exp(x):
    return jnp.exp(x)


def _exp_forward(x):
    value = jnp.exp(x)
    return value, value


def _exp_backward(value, slope):
    return (jnp.where(slope == 0, 0, slope * value),)


_guarded_exp.defvjp(_exp_forward, _exp_backward)
