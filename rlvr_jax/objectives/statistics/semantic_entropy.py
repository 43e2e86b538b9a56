"""Disagreement of the answers to one prompt."""

import jax.numpy as jnp

from rlvr_jax.objectives.statistics.groups import group_sum, pair_ids
from rlvr_jax.types import Ids, RowMask, Rows


def semantic_entropy(loglik: Rows, answer: Ids, group: Ids, where: RowMask | None = None) -> Rows:
    """Entropy over the distinct answers of a group (nats), at each of its rollouts.

    p_k = Σ_{i with answer k} exp ℓ_i / Σ_i exp ℓ_i; SE = -Σ_k p_k ln p_k in [0, ln n]. With ℓ = 0
    the p_k are fractions of the rollouts.

    Args:
      loglik: ℓ, a log-likelihood of the rollout of moderate size, such as a mean over tokens.
      answer: class of the final answer; only compared within a group.
      group: group of each row.
      where: the rows that count; a group without any has 0.
    """
    likelihood = jnp.exp(loglik) if where is None else jnp.where(where, jnp.exp(loglik), 0)
    total = group_sum(likelihood, group)
    own = likelihood / jnp.where(total > 0, total, 1)
    fraction = group_sum(own, pair_ids(group, answer))
    terms = -own * jnp.log(jnp.where(fraction > 0, fraction, 1))
    return jnp.maximum(group_sum(terms, group), 0)
