"""Advantages of wrong answers, by how far the policy has moved the response from the reference."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = ["amplify_confident_errors", "confidence_shift", "confident_error_factor"]


def confidence_shift(
    logp: Float[Array, "B T"], reference_logp: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B"]:
    """c_i = Σ_t (logp_t - reference_logp_t): the log ratio of the response, nats; no gradient.

    A sum over all tokens: tens of nats are usual after some training.
    """
    return masked_sum(jax.lax.stop_gradient(logp) - reference_logp, mask, axis=1)


def confident_error_factor(
    advantage: Float[Array, "B T"],
    shift: Float[Array, "B"],
    strength: float = 1.0,
    gate: Callable[[Array], Array] = jax.nn.softplus,
) -> Float[Array, "B T"]:
    """1 + α gate(c_i) where the advantage is negative, else 1.

    Args:
      advantage: A.
      shift: c, of `confidence_shift`.
      strength: α.
      gate: softplus(c) = ln(1 + e^c) is 0.69 at c = 0, so that it already acts on the untrained
        policy; `jax.nn.relu` does not.
    """
    return jnp.where(advantage < 0, 1 + strength * gate(shift)[:, None], 1)


@part(reads={"logp", "reference_logp"}, writes={"advantage"})
def amplify_confident_errors(
    strength: NonNegative = 1.0, gate: Callable[[Array], Array] = jax.nn.softplus
) -> Transform:
    """A' = A · (1 + α gate(c_i)) where A < 0: wrong answers that became likelier are pushed harder.

    Args:
      strength: α, at least 0.
      gate: of the confidence shift, see `confident_error_factor`.
    Reads: advantage, logp, reference_logp, mask. Writes: advantage. Metrics: error_factor (mean
      over the tokens).
    Raises:
      ValueError: a negative strength.
    Source: ACE, https://arxiv.org/abs/2602.21420.
    """

    def apply(signals, context, state):
        mask = signals.mask
        shift = confidence_shift(context.stats.logp, context.rollouts.reference_logp, mask)
        factor = confident_error_factor(signals.advantage, shift, strength, gate)
        signals = replace(signals, advantage=jnp.where(mask, factor * signals.advantage, 0))
        return signals, state, {"error_factor": masked_mean(factor, mask)}

    return apply
