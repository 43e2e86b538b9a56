"""OBLR-PO: the baseline of least variance, weighted by the squared norms of the scores.

"OBLR-PO: A Theoretical Framework for Stable Reinforcement Learning"

    w_i  = ‖∇ log π(y_i)‖²
    A_i  = R_i - Σ_j w_j R_j / (Σ_j w_j + ε) over the group
    loss = -mean_i A_i Σ_t logp_it

A reconstruction from the abstract, which has no constants. The default norms are those in logit
space, Σ_t (1 - 2 p_t(y_t) + Σ_v p_t(v)²). Other norms are passed as `norm`, with the statistics
that they read as `reads`. ε (`epsilon`) is usually 1e-8; ours is 0.

Left out: the learning rate by the gradient's signal-to-noise ratio, whose schedule is not known.
Reports: Qwen3-4B and 8B base: steadily above other policy gradients (abstract, no numbers).
Traps: The norms are approximations in logit space: long confident responses have little weight. The
rollout's own reward is part of the baseline, a small bias. Groups of equal rewards do not train.
"""

from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives import Context, Transform, group_of_one_remark, masked_sum, objective, part
from rlvr_jax.objectives.statistics.groups import group_mean, group_sum
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import LOSS_ON_BRACKETS, Ids, Method, Recipe, Rows, replace
from rlvr_jax.types.hyperparameters import NonNegative


def score_weighted_mean(reward: Rows, norm: Rows, group: Ids, epsilon: float = 0.0) -> Rows:
    """b = Σ_j w_j R_j / (Σ_j w_j + ε) over the group.

    Args:
      reward: reward of each row, [B] (R).
      norm: squared norms of the scores (w).
      group: group of each row, int [B].
      epsilon: with 0 the baseline of equal rewards is exactly their value.
    """
    if not epsilon:
        # Norms that all round to 0 get equal weights: equal rewards are then their own baseline.
        weights = jnp.where(group_sum(norm, group) > 0, norm, 1)
        return group_mean(reward, group, weights=weights)
    return group_sum(norm * reward, group) / (group_sum(norm, group) + epsilon)


def logit_score_norm(context: Context) -> Float[Array, "B"]:
    """Σ_t ‖e_{y_t} - p_t‖² = Σ_t (1 - 2 p_t(y_t) + Σ_v p_t(v)²): squared norms in logit space.

    Products of different tokens and the size of the hidden states are left out.
    """
    stats = jax.lax.stop_gradient(context.stats)
    squares = 1 - 2 * jnp.exp(stats.logp) + stats.records["p_squared"]
    squares = jnp.maximum(squares, 0)  # 0 may round below
    return masked_sum(squares, context.rollouts.mask, axis=1)


@part(writes={"advantage"})
def score_weighted(
    norm: Callable[[Context], Array] = logit_score_norm,
    epsilon: NonNegative = 0.0,
    reads: Iterable[str] = ("logp", "p_squared", "batch_statistics"),
) -> Transform:
    """A_i = R_i - b with the baseline of `score_weighted_mean`."""

    def apply(signals, context, state):
        reward, group = context.rollouts.reward, context.rollouts.group
        baseline = score_weighted_mean(reward, norm(context), group, epsilon)
        own = jnp.where(signals.mask, (reward - baseline)[:, None], 0)
        return replace(signals, advantage=own), state, {}

    return Transform(apply, reads=frozenset(reads), remark=group_of_one_remark)


def oblr_po(
    norm: Callable[[Context], Array] = logit_score_norm,
    epsilon: NonNegative = 0.0,
    reads: tuple[str, ...] = ("logp", "p_squared", "batch_statistics"),
) -> Recipe:
    """Multiplies the response's log-prob by its reward relative to the score-weighted mean.

    Args:
      norm: context -> [B], squared norms of the scores (w).
      epsilon: added to the denominator of the baseline (ε).
      reads: statistics and records that `norm` reads, as for `Transform`.
    """
    advantage = score_weighted(norm, epsilon, reads)
    return Recipe(
        objective(advantage=advantage, surrogate=reinforce(), aggregation=rollout_mean_token_sum())
    )


METHOD = Method(
    oblr_po,
    changes="advantage, surrogate",
    gradient="stopped",
    evidence="reconstruction",
    shown=LOSS_ON_BRACKETS,
)
