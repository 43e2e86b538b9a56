"""Rewards without labels: how many of a group give the same answer.

Answers are classes (`Rollouts.answer`), compared within a group. A response that gives none agrees
with no other. Sources:
https://github.com/QingyangZhang/EMPO and https://github.com/PRIME-RL/TTRL.
"""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.experience.rewards.parts import Shaping, judged_mean, judged_rows
from rlvr_jax.objectives.choice import answer_clusters, first_of_largest
from rlvr_jax.objectives.statistics.groups import group_count, group_max, group_sum
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.semantic_entropy import semantic_entropy
from rlvr_jax.types import Rollouts, is_correct
from rlvr_jax.types.hyperparameters import Finite, Unit
from rlvr_jax.types.parts import check_each, part

__all__ = [
    "agreement",
    "answer_share",
    "answers_agree",
    "confident_only",
    "disagreement",
    "most_voted",
]

Answers = Int[Array, "B"]


Groups = Int[Array, "B"]


def answer_share(clusters: Answers, group: Groups, dtype: DTypeLike = float) -> Float[Array, "B"]:
    """p: share of the group's rows that give the row's answer."""
    return group_count(clusters).astype(dtype) / group_count(group).astype(dtype)


def disagreement(clusters: Answers, group: Groups, dtype: DTypeLike = float) -> Float[Array, "B"]:
    """H = -Σ_c p_c ln p_c over the answers of the group, nats, at each of its rows."""
    return semantic_entropy(jnp.zeros(group.shape, dtype), clusters, group)


def answers_agree(clusters: Answers, group: Groups) -> Bool[Array, "B"]:
    """Whether any two rows of the group give one answer; False where all differ."""
    return group_max(group_count(clusters).astype(float), group) > 1


def confident_only(share: Float[Array, "B"], group: Groups, least: float) -> Float[Array, "B"]:
    """The shares, 0 in groups whose most frequent answer has less than `least`."""
    return jnp.where(group_max(share, group) < least, 0, share)


def most_voted(share: Float[Array, "B"], clusters: Answers, rollouts: Rollouts) -> Bool[Array, "B"]:
    """Rows with the answer of most rows of their group; of equal ones that which comes first.

    A row without an answer (`rollouts.answer` negative) has no vote.
    """
    label = _label(share, rollouts)
    return group_sum(label.astype(share.dtype), clusters) > 0


def _label(share, rollouts):
    """The row of each group whose answer is that of most."""
    given = rollouts.answer >= 0
    return first_of_largest(share, rollouts.group, rollouts.rollout_id, given)


@part
def agreement(
    least: Unit = 0.0,
    vote: bool = False,
    missing: float | None = None,
    parted: float | None = None,
) -> Shaping:
    """The share of the group that gives the row's answer, or 1 for the answer of most and 0 else.

    Args:
      least: share of the most frequent answer below which a group earns nothing.
      vote: pays the answer of most 1 and the others 0; of equal ones the answer that comes first.
      missing: what a response without an answer earns; None: the share of one row.
      parted: what the rows of a group earn in which all answers differ; None: as any other.
    Reads: answer, group, rollout_id; outcome for the curve alone.
    Metrics: answer_entropy (H, nats), majority_share, label_accuracy (share of the groups whose
      first answer of most rows is right), reward_accuracy (mean of 1 - |outcome - reward|).
    Raises:
      ValueError: least outside [0, 1]; another number that is not finite.
    """
    given = {"missing": missing, "parted": parted}
    check_each(Finite, "agreement", **{n: value for n, value in given.items() if value is not None})

    def apply(rollouts, state, moment):
        del moment
        group, kind = rollouts.group, rollouts.outcome.dtype
        clusters = answer_clusters(rollouts.answer, group)
        share = answer_share(clusters, group, kind)
        earned = confident_only(share, group, least)
        if vote:
            earned = jnp.where(most_voted(share, clusters, rollouts), jnp.sign(earned), 0)
        if missing is not None:
            earned = jnp.where(rollouts.answer < 0, missing, earned)
        if parted is not None:
            earned = jnp.where(answers_agree(clusters, group), earned, parted)
        right = is_correct(rollouts.outcome).astype(kind)
        metrics = {
            "answer_entropy": judged_mean(disagreement(clusters, group, kind), rollouts),
            "majority_share": judged_mean(group_max(share, group), rollouts),
            "reward_accuracy": judged_mean(1 - jnp.abs(right - earned), rollouts),
            "label_accuracy": masked_mean(right, _label(share, rollouts) & judged_rows(rollouts)),
        }
        return earned, state, metrics

    return Shaping(apply, reads=frozenset({"answer"}))
