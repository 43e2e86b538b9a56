"""Choosing one of N answers by their scores: for evaluations and at test time, never for the loss.

A rule scores the answer of each row. The row of the largest score of its group is chosen; among
equal scores the first row by `rollout_id`.

| rule | score of a row |
|---|---|
| `own_score` | the row's score |
| `vote_count` | number of rows of the group with its answer |
| `vote_sum` | sum of the scores of these rows |
| `lower_bound(...)` | mean score of these rows minus a penalty, larger for few rows |
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Int

from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_sum, pair_ids
from rlvr_jax.types import Function, Ids, RowMask, Rows, part
from rlvr_jax.types.hyperparameters import Count, NonNegative

Rule = Callable[[Array, Array, Array], Array]
"""A score of answers for `choose`: (score [B], cluster [B], group [B]) -> [B]."""


def answer_clusters(answer: Ids, group: Ids, parsed: RowMask | None = None) -> Ids:
    """One id per answer and group: two rows of a group have one id if their answers are equal.

    Args:
      answer: class of the final answer.
      parsed: rows with an answer; each other row is a separate cluster. None: all rows.
    """
    cluster = pair_ids(group, answer)
    if parsed is None:
        return cluster
    return jnp.where(parsed, cluster, -1 - jnp.arange(cluster.size, dtype=cluster.dtype))


def first_of_largest(
    values: Rows, group: Ids, rollout_id: Ids, where: RowMask | None = None
) -> RowMask:
    """The row of the largest value of each group; among equal values the first by `rollout_id`.

    Args:
      values: finite value of each row, such as a reward.
      group: group of each row.
      rollout_id: id of each row.
      where: rows that may be chosen; a group without any has no choice.
    """
    if where is None:
        return group_rank(-values, group, rollout_id) == 0
    values = jnp.where(where, values, -jnp.inf)
    return where & (group_rank(-values, group, rollout_id) == 0)


def choose(
    score: Rows, answer: Ids, group: Ids, rollout_id: Ids, rule: Rule, parsed: RowMask | None = None
) -> RowMask:
    """The chosen row of each group, bool [B].

    Args:
      score: of each row, such as a judge's grade.
      answer: class of the final answer.
      group: group of each row.
      rollout_id: distinct within a group.
      rule: of this module.
      parsed: rows with an answer; a group without any has no choice. None: all.
    """
    clusters = answer_clusters(answer, group, parsed)
    return first_of_largest(rule(score, clusters, group), group, rollout_id, parsed)


def own_score(score: Rows, cluster: Int[Array, "B"], group: Int[Array, "B"]) -> Rows:
    """A rule of `choose`: the row with the highest score."""
    del cluster, group
    return score


def vote_count(score: Rows, cluster: Int[Array, "B"], group: Int[Array, "B"]) -> Rows:
    """Number of rows with the answer; scores are not read."""
    del group
    return group_count(cluster).astype(score.dtype)


def vote_sum(score: Rows, cluster: Int[Array, "B"], group: Int[Array, "B"]) -> Rows:
    """The sum of the scores of the rows with the answer."""
    del group
    return group_sum(score, cluster)


@part
def lower_bound(strength: NonNegative = 0.1, verdicts: Count = 1) -> Function:
    """r_a - α ln(N M) / (N_a M + 1), r_a the mean score of the N_a rows of an answer, of N in all.

    The penalty bounds the error of a mean of few grades. With α = 0 the best mean score is chosen,
    with a large α the most frequent answer.

    Args:
      strength: weight of the penalty for few grades (α).
      verdicts: M, grades of a row; its score is their mean.
    Source: Heimdall, https://arxiv.org/abs/2504.10337.
    """

    def rule(score, cluster, group):
        count, number = (group_count(ids).astype(score.dtype) for ids in (cluster, group))
        penalty = strength * jnp.log(number * verdicts) / (count * verdicts + 1)
        return group_mean(score, cluster) - penalty

    return rule
