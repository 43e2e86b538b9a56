"""How much a right rollout differs from the other right ones of its group, and what that earns."""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.statistics.groups import (
    group_count,
    group_has_tokens,
    group_max,
    group_sum,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "diversity",
    "diversity_weighted_entropy",
    "diversity_weights",
    "formula_uniqueness",
    "semantic_distance",
]


def semantic_distance(
    embedding: Float[Array, "B D"], right: Bool[Array, "B"], group: Int[Array, "B"]
) -> Float[Array, "B"]:
    """Mean of (1 - cos) / 2 to the other right rows of the group, in [0, 1].

    0 on wrong rows and where there is no other right row.

    Args:
      embedding: of each row; a zero vector has cosine 0 with everything.
      right: the rows that are compared.
      group: id of the group of each row.
    """
    squares = jnp.sum(embedding**2, axis=1, keepdims=True)
    unit = embedding / jnp.sqrt(jnp.where(squares > 0, squares, 1))
    together = jax.vmap(group_sum, (1, None, None), 1)(unit, group, right)
    own = jnp.sum(unit**2, axis=1)
    peers = group_count(group, right) - 1
    cosine = (jnp.sum(unit * together, axis=1) - own) / jnp.maximum(peers, 1).astype(own.dtype)
    return jnp.where(right & (peers > 0), (1 - cosine) / 2, 0)


def formula_uniqueness(
    formulas: Int[Array, "B F"],
    right: Bool[Array, "B"],
    group: Int[Array, "B"],
    dtype: DTypeLike = float,
) -> Float[Array, "B"]:
    """Share of a row's different formulas that no other right row of its group has.

    0 on wrong rows, on rows without formulas, and where there is no other right row.

    Args:
      formulas: ids, padded with -1; an id may stand there twice.
      right: the rows that are compared.
      group: id of the group of each row.
    """
    rows, width = formulas.shape
    ids = jnp.sort(formulas, axis=1)
    repeated = jnp.pad(ids[:, 1:] == ids[:, :-1], ((0, 0), (1, 0)))
    present = right[:, None] & (ids >= 0) & ~repeated
    # Each (group, id) is a run of equal neighbours in the sorted list of what is present.
    segment = jnp.searchsorted(jnp.sort(group), group)[:, None]
    segment = jnp.where(present, segment, rows).ravel()
    flat = jnp.where(present, ids, -1).ravel()
    order = jnp.lexsort((flat, segment))
    in_order = jnp.stack([segment[order], flat[order].astype(segment.dtype)])
    starts = jnp.any(in_order[:, 1:] != in_order[:, :-1], axis=0).astype(jnp.int32)
    run = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(starts, dtype=jnp.int32)])
    length = jax.ops.segment_sum(jnp.ones_like(run), run, num_segments=rows * width)[run]
    holders = jnp.zeros_like(length).at[order].set(length).reshape(rows, width)
    different = jnp.sum(present, axis=1, dtype=jnp.int32)
    alone = jnp.sum(present & (holders == 1), axis=1, dtype=jnp.int32)
    share = alone.astype(dtype) / jnp.maximum(different, 1).astype(dtype)
    return jnp.where(right & (group_count(group, right) > 1), share, 0)


def diversity(rollouts: Rollouts) -> Float[Array, "B"]:
    """d in [0, 1]: the mean of `semantic_distance` and `formula_uniqueness` of right rows."""
    right, group = outcome_is_right(rollouts.outcome), rollouts.group
    distance = semantic_distance(rollouts.embedding, right, group)
    unique = formula_uniqueness(rollouts.formulas, right, group, distance.dtype)
    return jnp.clip((distance + unique) / 2, 0, 1)


def diversity_weights(
    values: Float[Array, "B"], right: Bool[Array, "B"], group: Int[Array, "B"], temperature: float
) -> Float[Array, "B"]:
    """Softmax of d / τ over the right rows of the group; 0 on wrong ones.

    Args:
      values: d.
      temperature: τ, positive.
    """
    scaled = values / temperature
    power = jnp.where(right, jnp.exp(scaled - group_max(scaled, group, right)), 0)
    total = group_sum(power, group)
    return power / jnp.where(total > 0, total, 1)


@part(reads={"entropy", "embedding", "formulas"}, writes={"term"})
def diversity_weighted_entropy(coefficient: Finite, temperature: Positive = 1.0) -> Transform:
    """Rewards entropy on right rollouts, more on those that differ: term - λ J.

    J = mean over the groups of Σ_i w_i (mean entropy of the tokens of row i), with w the
    `diversity_weights` of the right rows; groups and rows are those with tokens.

    Args:
      coefficient: λ.
      temperature: τ of the weights, positive.
    Reads: entropy, outcome, group, embedding, formulas. Writes: term. Metrics: local_entropy (J).
    Raises:
      ValueError: temperature not positive, or coefficient not finite.
    """

    def apply(signals, context, state):
        rollouts, group = context.rollouts, context.rollouts.group
        right = outcome_is_right(rollouts.outcome) & has_tokens(signals.mask)
        weight = diversity_weights(diversity(rollouts), right, group, temperature)
        entropy = masked_mean(context.stats.entropy, signals.mask, axis=1)
        one_group = 1 / group_count(group).astype(entropy.dtype)
        num_groups = masked_sum(one_group, group_has_tokens(signals.mask, group))
        local = jnp.sum(jax.lax.stop_gradient(weight) * entropy) / jnp.maximum(num_groups, 1)
        signals = replace(signals, term=signals.term - coefficient * local)
        return signals, state, {"local_entropy": local}

    return apply
