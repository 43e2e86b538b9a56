"""Divergences from a policy that wrote the tokens: generators f(u) and the mixture form.

The tokens are the reference's, u = π / π_ref at a token. Then the mean of f(u) estimates the
f-divergence, and as f is convex with f(1) = f'(1) = 0 it is silent at π = π_ref. These divergences
cover the modes of the reference: they ask the policy to keep what it could do.

All have the form of `rlvr_jax.objectives.statistics.divergences`: (logp, reference_logp, old_logp)
-> nats. log u is clamped to ±20, without gradient beyond; the published code clamps the forward KL
only.
Source: https://github.com/seamoke/DPH-RL.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.statistics.divergences import k3
from rlvr_jax.types.hyperparameters import OpenUnit
from rlvr_jax.types.parts import Function, part

__all__ = [
    "alpha_generator",
    "forward_kl_generator",
    "jensen_shannon_generator",
    "policy_to_mixture",
    "reference_to_mixture",
]

Values = Float[Array, "..."]


def forward_kl_generator(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """min(u - log u - 1, 10), of KL(π_ref ‖ π): grows like -log u where the policy gives up."""
    del old_logp
    log_u = _clamped(logp - reference_logp)
    value = jnp.expm1(log_u) - log_u
    return jnp.where(value <= 10, value, 10)


def jensen_shannon_generator(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """u log u - (u + 1) log((u + 1) / 2), of twice the JS divergence.

    It saturates at log 2 for u → 0: it forgives what the policy has given up.
    """
    del old_logp
    log_u = _clamped(logp - reference_logp)
    u = jnp.exp(log_u)
    return u * log_u - (u + 1) * (jnp.logaddexp(log_u, 0) - jnp.log(jnp.asarray(2, u.dtype)))


@part
def alpha_generator(alpha: OpenUnit) -> Function:
    """(u^(1 - α) - (1 - α) u - α) / (α (α - 1)): the forward KL for α → 1, the reverse for α → 0.

    Args:
      alpha: in (0, 1).
    Raises:
      ValueError: alpha outside (0, 1).
    """

    def divergence(logp, reference_logp, old_logp):
        del old_logp
        log_u = _clamped(logp - reference_logp)
        power, linear = jnp.exp((1 - alpha) * log_u), (1 - alpha) * jnp.exp(log_u)
        return (power - linear - alpha) / (alpha * (alpha - 1))

    return divergence


def policy_to_mixture(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """k3 of KL(π ‖ m), m the even mixture of policy and reference: for tokens of the policy.

    Half the sum with `reference_to_mixture`, each on its own tokens, is the JS divergence by its
    definition.
    """
    return k3(logp, _mixture(logp, reference_logp), old_logp)


def reference_to_mixture(logp: Values, reference_logp: Values, old_logp: Values) -> Values:
    """k3 of KL(π_ref ‖ m), m the even mixture of both: for tokens that the reference wrote."""
    return k3(reference_logp, _mixture(logp, reference_logp), old_logp)


def _mixture(logp, reference_logp):
    return jnp.logaddexp(logp, reference_logp) - jnp.log(jnp.asarray(2, logp.dtype))


def _clamped(log_ratio):
    inside = jnp.abs(log_ratio) <= 20
    return jnp.where(inside, log_ratio, jax.lax.stop_gradient(jnp.clip(log_ratio, -20, 20)))
