r"""Estimators of the divergence from a reference at the sampled token, and their gradients.

With d = logp - reference_logp, x = exp(-d) and ρ = exp(logp - old_logp). The tokens are sampled
from the policy, in the last row from the old policy:

| name | value | d value / d logp | expected gradient as a loss |
|---|---|---|---|
| `k1` | d | 1 | 0: correct in a reward, useless as a loss |
| `absolute` | \|d\| | sign d | not that of a divergence |
| `k2` | d²/2 | d | that of KL(policy ‖ reference) |
| `k3` | x + d - 1 | 1 - x | that of KL(reference ‖ policy) |
| `k3_importance` | ρ (x + d - 1) | ρ d | that of KL(policy ‖ reference), also off-policy |

All are functions (logp, reference_logp, old_logp) -> nats, each [B, T], without clamping. Many
trainers use `k3_clamped`, which is `k3` up to 10 nats and constant above.
Sources: Schulman 2020, http://joschu.net/blog/kl-approx.html; DeepSeek-AI 2025, DeepSeek-V3.2
(`k3_importance`).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Values = Float[Array, "..."]


Divergence = Callable[[Array, Array, Array], Array]
"""An estimate of a divergence at a token: (logp, reference_logp, old_logp) -> values, nats."""


def k1(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """The log ratio d: unbiased, of either sign."""
    del old_logp
    return logp - reference_logp


def absolute(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """The distance |d|: a pull of constant size, 0 where the policies agree."""
    del old_logp
    return jnp.abs(logp - reference_logp)


def k2(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """The square d²/2: a biased estimate with the gradient of KL(policy ‖ reference)."""
    del old_logp
    return (logp - reference_logp) ** 2 / 2


def k3(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """x + d - 1 ≥ 0: unbiased with low variance, with the gradient of KL(reference ‖ policy)."""
    del old_logp
    d = logp - reference_logp
    return jnp.expm1(-d) + d  # exp(-d) - 1 would lose the small values


def k3_clamped(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """min(k3, 10) with d clamped to ±20: always finite; no gradient where it is clamped."""
    del old_logp
    d = logp - reference_logp
    inside = jnp.abs(d) <= 20
    d = jnp.where(inside, d, jax.lax.stop_gradient(jnp.clip(d, -20, 20)))
    value = jnp.expm1(-d) + d
    return jnp.where(value <= 10, value, 10)


def k3_importance(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """ρ · k3, with gradient through ρ: value and gradient are also correct off-policy."""
    return jnp.exp(logp - old_logp) * k3(logp, reference_logp, old_logp)


def self_certainty(
    logsumexp: Float[Array, "B T"], mean_logit: Float[Array, "B T"]
) -> Float[Array, "B T"]:
    """log Σ exp z - mean z = KL(uniform ‖ p) + log V over the logits z; larger for a peaked p."""
    return logsumexp - mean_logit
