"""How much the answers to one prompt disagree, and the scale that follows from it."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform, describe, stateless
from rlvr_jax.objectives.arguments import check_finite
from rlvr_jax.objectives.statistics.groups import group_count, group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
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


def semantic_entropy(
    loglik: Rows,
    answer: Int[Array, "B"],
    group: Int[Array, "B"],
    where: Bool[Array, "B"] | None = None,
) -> Rows:
    """Entropy over the distinct answers of a group, nats, given to each of its rollouts.

    p_k = Σ_{i with answer k} exp ℓ_i / Σ_i exp ℓ_i; SE = -Σ_k p_k ln p_k in [0, ln n]. With ℓ = 0
    the p_k are shares of the rollouts.

    Args:
      loglik: ℓ, a log-likelihood of the rollout; of moderate size, as a mean over tokens is.
      answer: class of the final answer, compared within a group.
      group: id of the group of each rollout.
      where: the rows that count; a group without any has 0.
    """
    rows = group.shape[0]
    place = [jnp.searchsorted(jnp.sort(ids), ids) for ids in (group, answer)]
    cluster = place[0] * rows + place[1]
    likelihood = jnp.exp(loglik) if where is None else jnp.where(where, jnp.exp(loglik), 0)
    total = group_sum(likelihood, group)
    own = likelihood / jnp.where(total > 0, total, 1)
    share = group_sum(own, cluster)
    terms = -own * jnp.log(jnp.where(share > 0, share, 1))
    return jnp.maximum(group_sum(terms, group), 0)


def relative_semantic_entropy(
    loglik: Rows,
    answer: Int[Array, "B"],
    group: Int[Array, "B"],
    where: Bool[Array, "B"] | None = None,
) -> Rows:
    """u = SE / ln n in [0, 1], n the rollouts of the group that count; 0 for a group of one."""
    number = jnp.maximum(group_count(group, where), 1)
    largest = jnp.log(number.astype(loglik.dtype))
    entropy = semantic_entropy(loglik, answer, group, where)
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
    check_finite("scale_by_semantic_entropy", rate=rate)

    def apply(signals, context, state):
        rollouts, written = context.rollouts, has_tokens(signals.mask)
        loglik = masked_mean(context.old_logp, signals.mask, axis=1)
        share = relative_semantic_entropy(loglik, rollouts.answer, rollouts.group, written)
        scale = decay(share, rate)
        signals = replace(signals, advantage=signals.advantage * scale[:, None])
        return signals, state, {"semantic_entropy_scale": masked_mean(scale, written)}

    label = describe("scale_by_semantic_entropy", rate=float(rate), decay=decay)
    return stateless(apply, needs={"logp", "answer", "batch_statistics"}, label=label, once=True)
