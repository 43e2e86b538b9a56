"""Aggregations of token losses, always with the denominators of the whole batch.

Rollout i has n_i tokens on the mask. S is the number of rollouts with tokens, B the number of rows,
and L a constant:

| name | weight of a token | whose loss |
|---|---|---|
| `token_mean` | 1 / Σ n_i | DAPO and most later work |
| `rollout_mean_token_mean` | 1 / (S n_i) | GRPO's paper, GSPO |
| `rollout_mean_token_sum` | 1 / S | REINFORCE, RLOO |
| `row_mean_token_mean` | 1 / (B n_i) | TRL's "grpo": empty rows shrink the loss |
| `fixed_length_mean` | 1 / (B L) | Dr. GRPO |
| `fixed_length_sum` | 1 / L | verl's "seq-mean-token-sum-norm" to 0.7.0: grows with the batch |

The loss is 0 for an empty mask. Under token means long rollouts dominate; means per rollout favour
short correct and long incorrect responses.
"""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Aggregation
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part
def token_mean() -> Aggregation:
    """Mean over all tokens of the batch: Σ l / Σ n_i.

    Examples:
      >>> from rlvr_jax import methods
      >>> from rlvr_jax.objectives import token_mean
      >>> methods.recipe("grpo", aggregation=token_mean()).objective.labels[-1]
      'token_mean()'
    """

    def weights(mask, dtype):
        return jnp.full(mask.shape, 1, dtype) / at_least_one(masked_count(mask), dtype)

    return Aggregation(weights)


@part
def rollout_mean_token_mean() -> Aggregation:
    """Mean over the rollouts with tokens of the mean over their tokens: Σ_i (Σ_t l / n_i) / S."""

    def weights(mask, dtype):
        return _per_token(mask, dtype) / at_least_one(rollouts_with_tokens(mask), dtype)

    return Aggregation(weights)


@part
def rollout_mean_token_sum() -> Aggregation:
    """Mean over the rollouts with tokens of the sum over their tokens: Σ l / S."""

    def weights(mask, dtype):
        return jnp.full(mask.shape, 1, dtype) / at_least_one(rollouts_with_tokens(mask), dtype)

    return Aggregation(weights)


@part
def row_mean_token_mean() -> Aggregation:
    """Mean over all rows, empty ones included, of the mean over their tokens."""

    def weights(mask, dtype):
        return _per_token(mask, dtype) / mask.shape[0]

    return Aggregation(weights)


@part
def fixed_length_mean(length: Count) -> Aggregation:
    """Sum over the tokens divided by rows times a constant: Σ l / (B L).

    Args:
      length: L, one constant for the whole run: the budget of response tokens.
    """

    def weights(mask, dtype):
        return jnp.full(mask.shape, 1 / (mask.shape[0] * length), dtype)

    return Aggregation(weights)


@part
def fixed_length_sum(length: Count) -> Aggregation:
    """Sum over the tokens divided by a constant: Σ l / L; B times `fixed_length_mean`."""

    def weights(mask, dtype):
        return jnp.full(mask.shape, 1 / length, dtype)

    return Aggregation(weights)


def _per_token(mask, dtype):
    """1 / n_i at every token of rollout i."""
    counts = at_least_one(masked_count(mask, axis=1), dtype)
    return jnp.broadcast_to(1 / counts[:, None], mask.shape)


def rollouts_with_tokens(mask: Bool[Array, "B T"]) -> Int[Array, ""]:
    """The number of rows with a token on the mask."""
    return masked_count(jnp.any(mask, axis=1))


def at_least_one(count: Int[Array, "..."], dtype: DTypeLike) -> Float[Array, "..."]:
    """A count as a divisor: 1 or more."""
    return jnp.maximum(count, 1).astype(dtype)
