"""Advantages that shrink where the answers to one prompt disagree."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.semantic_entropy import relative_semantic_entropy
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = [
    "Decay",
    "exponential_decay",
    "focal_decay",
    "hyperbolic_decay",
    "linear_decay",
    "scale_by_semantic_entropy",
]

Rows = Float[Array, "B"]
Decay = Callable[[Array, float], Array]


def hyperbolic_decay(share: Rows, rate: float) -> Rows:
    """1 / (1 + α u)."""
    return 1 / (1 + rate * share)


def linear_decay(share: Rows, rate: float) -> Rows:
    """1 - α u."""
    return 1 - rate * share


def exponential_decay(share: Rows, rate: float) -> Rows:
    """exp(-α u)."""
    return jnp.exp(-rate * share)


def focal_decay(share: Rows, rate: float) -> Rows:
    """(1 - u)^α."""
    return (1 - share) ** rate


@part(reads={"logp", "answer", "batch_statistics"}, writes={"advantage"}, once=True)
def scale_by_semantic_entropy(rate: Finite, decay: Decay = hyperbolic_decay) -> Transform:
    """Shrinks the advantages of a group by how much its answers disagree: A' = A f(u; α).

    u is the `relative_semantic_entropy` of the rollouts with tokens, with the mean old log-prob of
    these as ℓ.

    Args:
      rate: α.
      decay: f, one of the functions of this module.
    Reads: advantage, answer, group, old_logp, mask. Writes: advantage. Metrics:
      semantic_entropy_scale, its mean over the rollouts with tokens.
    Raises:
      ValueError: rate not finite.
    Source: SEED-GRPO, https://github.com/Dreamer312/SEED-GRPO.
    """

    def apply(signals, context, state):
        rollouts, written = context.rollouts, has_tokens(signals.mask)
        loglik = masked_mean(context.old_logp, signals.mask, axis=1)
        share = relative_semantic_entropy(loglik, rollouts.answer, rollouts.group, written)
        scale = decay(share, rate)
        signals = replace(signals, advantage=signals.advantage * scale[:, None])
        return signals, state, {"semantic_entropy_scale": masked_mean(scale, written)}

    return apply
