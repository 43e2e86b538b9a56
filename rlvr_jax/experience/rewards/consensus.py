"""Rewards without labels: the fraction of a group that has the same answer.

Answers are classes (record `answer`), compared within a group. A response without an answer agrees
with no other response. Sources:
https://github.com/QingyangZhang/EMPO and https://github.com/PRIME-RL/TTRL.
"""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from rlvr_jax.experience.rewards.choice import answer_clusters, first_of_largest
from rlvr_jax.experience.rewards.parts import Shaping, judged_mean, judged_rows
from rlvr_jax.objectives import masked_mean, semantic_entropy
from rlvr_jax.objectives.statistics.groups import group_count, group_max, group_sum
from rlvr_jax.types import is_correct
from rlvr_jax.types.hyperparameters import Finite, Unit
from rlvr_jax.types.parts import part

__all__ = ["agreement"]

Answers = Int[Array, "B"]
Groups = Int[Array, "B"]


def answer_fraction(
    clusters: Answers, group: Groups, dtype: DTypeLike = float
) -> Float[Array, "B"]:
    """p: fraction of the group's rows with the row's answer."""
    return group_count(clusters).astype(dtype) / group_count(group).astype(dtype)


def disagreement(clusters: Answers, group: Groups, dtype: DTypeLike = float) -> Float[Array, "B"]:
    """H = -Σ_c p_c ln p_c over the answers of the group, nats, at each of its rows."""
    return semantic_entropy(jnp.zeros(group.shape, dtype), clusters, group)


@part
def agreement(
    least: Unit = 0.0,
    vote: bool = False,
    missing: Finite | None = None,
    parted: Finite | None = None,
) -> Shaping:
    """The fraction of the group's rows with the row's answer, or a vote on the answers.

    Args:
      least: if the fraction of the most frequent answer is below it, the group's reward is 0.
      vote: the most frequent answer has the reward 1, others 0; among equally frequent ones the
        first counts. A row without an answer has no vote.
      missing: reward of a response without an answer; None: the fraction of one row.
      parted: reward of the rows of a group in which all answers differ; None: as in other groups.
    Reads: answer, group, rollout_id; outcome only for metrics.
    Metrics: answer_entropy (entropy of the answers of a group, nats), majority_fraction (mean
      fraction of the group with the most frequent answer), label_accuracy (fraction of the groups
      whose first row with the most frequent answer is correct), reward_accuracy (mean of 1 -
      |outcome - reward|).
    """

    def apply(rollouts, state, moment):
        group, kind = rollouts.group, rollouts.outcome.dtype
        clusters = answer_clusters(rollouts.records.get("answer"), group)
        fraction = answer_fraction(clusters, group, kind)
        given = rollouts.records["answer"] >= 0
        label = first_of_largest(fraction, group, rollouts.rollout_id, given)
        earned = jnp.where(group_max(fraction, group) < least, 0, fraction)
        if vote:
            voted = group_sum(label.astype(kind), clusters) > 0
            earned = jnp.where(voted, jnp.sign(earned), 0)
        if missing is not None:
            earned = jnp.where(given, earned, missing)
        if parted is not None:
            agree = group_max(group_count(clusters).astype(float), group) > 1
            earned = jnp.where(agree, earned, parted)
        correct = is_correct(rollouts.outcome).astype(kind)
        metrics = {
            "answer_entropy": judged_mean(disagreement(clusters, group, kind), rollouts),
            "majority_fraction": judged_mean(group_max(fraction, group), rollouts),
            "reward_accuracy": judged_mean(1 - jnp.abs(correct - earned), rollouts),
            "label_accuracy": masked_mean(correct, label & judged_rows(rollouts)),
        }
        return earned, state, metrics

    return Shaping(apply, reads=frozenset({"answer"}))
