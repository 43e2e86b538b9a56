"""Credit of turns from a critic that is a language model, and the preference loss that fits it.

The advantage of a turn is the mean log-ratio of critic and reference over its tokens. The critic is
fitted to pairs of trajectories: the best one of a prompt with each of the others.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.group_order import group_index
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Ids, Rollouts, RowMask, Rows, part, replace
from rlvr_jax.types.hyperparameters import Positive

__all__ = ["Score", "best_against_rest", "token_mean_score"]

Score = Callable[[Array, Rollouts], Array]
"""The score of a trajectory: (log_ratio [B, T], rollouts) -> [B]."""


def token_mean_score(log_ratio: Float[Array, "B T"], rollouts: Rollouts) -> Float[Array, "B"]:
    """Mean log-ratio over all tokens of the trajectory: long turns dominate."""
    return masked_mean(log_ratio, rollouts.mask, axis=1)


def best_in_group(reward: Rows, group: Ids, rollout_id: Ids, where: RowMask | None = None) -> Ids:
    """Row of the highest reward of the group; among equal rewards that of smallest `rollout_id`.

    Args:
      reward: one number per row.
      group: number of the prompt of each row.
      rollout_id: number of each row that does not depend on the batch.
      where: the rows that count; in a group without any the result has no meaning.
    """
    value = reward if where is None else jnp.where(where, reward, -jnp.inf)
    order = jnp.lexsort((rollout_id, -value, group)).astype(jnp.int32)
    index = group_index(group)
    first = jnp.searchsorted(index[order], index)
    return order[first]


def pairs_with_best(rollouts: Rollouts, best: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Rows that form a pair with the best row: both have tokens, and its reward is higher."""
    tokens = has_tokens(rollouts.mask)
    return (rollouts.reward < rollouts.reward[best]) & tokens & tokens[best]


def pair_losses(score: Rows, best: Ids, pairs: RowMask, coefficient: float) -> Rows:
    """-log σ(β (S_best - S_i)) for the rows that form a pair, 0 for the others.

    Args:
      score: S_i, one number per row.
      best: row of the best response of each group (`best_in_group`).
      pairs: True for rows that form a pair with it.
      coefficient: factor of the difference of the scores (β).

    Source: SWEET-RL, https://github.com/facebookresearch/sweet_rl.
    """
    return jnp.where(pairs, -jax.nn.log_sigmoid(coefficient * (score[best] - score)), 0)


@part(writes={"term"})
def best_against_rest(coefficient: Positive, score: Score = token_mean_score) -> Transform:
    """Trains the best response of a group to score higher than the others (`pair_losses`).

    The policy of this objective is the critic. The term is 0 without a pair.

    Args:
      coefficient: factor of the difference of the scores (β).
      score: (log-ratios [B, T], rollouts) -> [B], `token_mean_score` or `turn_sum_score`.
    Metrics: preferred_fraction (fraction of the pairs in the order of the rewards),
      preferred_margin (best score less the other one, mean of the pairs).
    Source: SWEET-RL, https://github.com/facebookresearch/sweet_rl.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        scores = score(context.stats.logp - rollouts.reference_logp, rollouts)
        written = has_tokens(rollouts.mask)
        best = best_in_group(rollouts.reward, rollouts.group, rollouts.rollout_id, written)
        pairs = pairs_with_best(rollouts, best)
        losses = pair_losses(scores, best, pairs, coefficient)
        margin = scores[best] - scores
        metrics = {
            "preferred_fraction": masked_mean((margin > 0).astype(margin.dtype), pairs),
            "preferred_margin": masked_mean(margin, pairs),
        }
        signals = replace(signals, term=signals.term + masked_mean(losses, pairs))
        return signals, state, metrics

    # A critic of turns requires the records of turns, even if the score does not read them.
    return Transform(apply, reads={"logp", "reference_logp", "batch_statistics", "turn"})
