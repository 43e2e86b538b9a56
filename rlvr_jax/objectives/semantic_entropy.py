"""How much the answers to one prompt disagree, and the scale that follows from it."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.arguments import check_finite
from rlvr_jax.objectives.groups import group_count, group_sum
from rlvr_jax.objectives.masked import masked_mean
from rlvr_jax.objectives.parts import Transform, describe, stateless
from rlvr_jax.types import replace

__all__ = [
    "Decay",
    "exponential_decay",
    "focal_decay",
    "hyperbolic_decay",
    "linear_decay",
    "relative_semantic_entropy",
    "scale_by_semantic_entropy",
    "semantic_entropy",
]

Rows = Float[Array, "B"]
Decay = Callable[[Array, float], Array]


def semantic_entropy(loglik: Rows, answer: Int[Array, "B"], group: Int[Array, "B"]) -> Rows:
    """Entropy over the distinct answers of a group, nats, given to each of its rollouts.

    p_k = Σ_{i with answer k} exp ℓ_i / Σ_i exp ℓ_i; SE = -Σ_k p_k ln p_k in [0, ln n]. With ℓ = 0
    the p_k are shares of the rollouts.

    Args:
      loglik: ℓ, a log-likelihood of the rollout; of moderate size, as a mean over tokens is.
      answer: class of the final answer, compared within a group.
      group: id of the group of each rollout.
    """
    rows = group.shape[0]
    place = [jnp.searchsorted(jnp.sort(ids), ids) for ids in (group, answer)]
    cluster = place[0] * rows + place[1]
    likelihood = jnp.exp(loglik)
    total = group_sum(likelihood, group)
    share = group_sum(likelihood, cluster) / total
    return jnp.maximum(group_sum(-likelihood / total * jnp.log(share), group), 0)


def relative_semantic_entropy(
    loglik: Rows, answer: Int[Array, "B"], group: Int[Array, "B"]
) -> Rows:
    """u = SE / ln n in [0, 1], n the rollouts of the group; 0 for a group of one."""
    largest = jnp.log(group_count(group).astype(loglik.dtype))
    entropy = semantic_entropy(loglik, answer, group)
    return jnp.clip(entropy / jnp.where(largest > 0, largest, 1), 0, 1)


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


def scale_by_semantic_entropy(rate: float, decay: Decay = hyperbolic_decay) -> Transform:
    """Shrinks the advantages of a group by how much its answers disagree: A' = A f(u; α).

    u is the `relative_semantic_entropy` with the mean old log-prob of a rollout's tokens as ℓ.

    Args:
      rate: α.
      decay: f, one of the functions of this module.
    Reads: advantage, answer, group, old_logp, mask. Writes: advantage. Metrics:
      semantic_entropy_scale, its mean over the rollouts.
    Raises:
      ValueError: rate not finite.
    Source: SEED-GRPO, https://github.com/Dreamer312/SEED-GRPO.
    """
    check_finite("scale_by_semantic_entropy", rate=rate)

    def apply(signals, context, state):
        rollouts = context.rollouts
        loglik = masked_mean(context.old_logp, signals.mask, axis=1)
        share = relative_semantic_entropy(loglik, rollouts.answer, rollouts.group)
        scale = decay(share, rate)
        signals = replace(signals, advantage=signals.advantage * scale[:, None])
        return signals, state, {"semantic_entropy_scale": jnp.mean(scale)}

    label = describe("scale_by_semantic_entropy", rate=float(rate), decay=decay)
    return stateless(apply, needs={"logp", "answer", "batch_statistics"}, label=label, once=True)
