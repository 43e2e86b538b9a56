"""Losses that fit the log-ratio of policy and reference to outcomes or to pairs of rollouts.

The implicit reward of a rollout is r_i = β Σ_t (logp - reference_logp). A loss is a function
(`ImplicitRewards`) -> scalar, and `implicit_reward_loss` makes it a part of an objective:

| loss | of | value |
|---|---|---|
| `logistic_pairs` | pairs | -log σ(r_w - r_l): DPO; a constant added to r has no effect |

`implicit_prm` has further losses. Means are over pairs or rollouts. The loss is 0 without any of
them, and for a batch without tokens.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_count, group_max, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.types import Ids, Mask, RowMask, Rows, Values, is_correct, part, replace
from rlvr_jax.types.hyperparameters import Positive


class ImplicitRewards(NamedTuple):
    """The input of an `ImplicitLoss`: implicit rewards, outcomes and pairs of rollouts.

    Fields:
      reward: r, with gradient.
      correct: whether the outcome is correct, bool [B].
      written: bool [B], rows with tokens; means run over these.
      partner: the row of the opposite outcome in the pair, -1 if the row has no partner.
      scale: β.
    """

    reward: Float[Array, "B"]
    correct: Bool[Array, "B"]
    written: Bool[Array, "B"]
    partner: Int[Array, "B"]
    scale: float


ImplicitLoss = Callable[[ImplicitRewards], Array]
"""The loss of `implicit_reward_loss`: a scalar from the implicit rewards."""


def correct_incorrect_pairs(
    correct: RowMask, group: Ids, rollout_id: Ids, where: RowMask | None = None
) -> Ids:
    """Pairs the k-th correct with the k-th incorrect rollout of a group, by `rollout_id`.

    Args:
      correct, group, rollout_id: outcome, group and id of each row.
      where: the rows that are paired.
    Returns:
      Row of the partner; -1 where the group has fewer of the other kind.
    """
    counted = jnp.ones_like(correct) if where is None else where
    # The order in each group: incorrect rows, correct rows, rows that do not count.
    kind = jnp.where(counted, correct.astype(jnp.int32), 2)
    order = jnp.lexsort((rollout_id, kind, group))
    place = jnp.argsort(order).astype(jnp.int32)
    start = jnp.searchsorted(jnp.sort(group), group)
    num_incorrect = group_count(group, counted & ~correct)
    num_correct = group_count(group, counted & correct)
    rank = place - start - jnp.where(correct, num_incorrect, 0)
    other = start + jnp.where(correct, 0, num_incorrect) + rank
    paired = counted & (rank < jnp.where(correct, num_incorrect, num_correct))
    return jnp.where(paired, order[jnp.where(paired, other, 0)], -1).astype(jnp.int32)


def first_pairs(
    correct: RowMask, group: Ids, rollout_id: Ids, where: RowMask, later: RowMask
) -> Ids:
    """Pairs only the first correct with the first incorrect rollout of a group.

    Args:
      correct, group, rollout_id: outcome, group and id of each row.
      where: the rows that are paired.
      later: rows that come after all others of their kind, such as those with guidance.
    Returns:
      Row of the partner; -1 for a row without one.
    """
    # As floats, which are exact for whole numbers up to 2^24 rows.
    order = jnp.argsort(jnp.lexsort((rollout_id, later))).astype(jnp.float32)
    partner = correct_incorrect_pairs(correct, group, order.astype(jnp.int32), where)
    paired = partner >= 0
    better = paired & correct
    earliest = better & (order == -group_max(-order, group, better))
    first = earliest | (paired & earliest[partner])
    return jnp.where(first, partner, -1)


def log_ratio_sum(logp: Values, reference_logp: Values, mask: Mask) -> Rows:
    """Σ_t (logp - reference_logp) over the tokens of each rollout, nats."""
    return masked_sum(logp - reference_logp, mask, axis=1)


def logistic_pairs(given: ImplicitRewards) -> Float[Array, ""]:
    """Mean over the pairs of -log σ(r_w - r_l).

    Source: Rafailov et al. 2023, https://arxiv.org/abs/2305.18290.
    """
    better, worse = given.reward, given.reward[given.partner]
    return masked_mean(-jax.nn.log_sigmoid(better - worse), first_of_pairs(given))


@part(writes={"term"})
def implicit_reward_loss(
    scale: Positive, loss: ImplicitLoss = logistic_pairs, one_pair: bool = False
) -> Transform:
    """Adds loss(r), r_i = β Σ_t (logp - reference_logp), to the loss.

    Pairs are those of `correct_incorrect_pairs` among the rollouts with tokens.

    Args:
      scale: scale of the implicit reward (β).
      loss: (`ImplicitRewards`) -> scalar.
      one_pair: only one pair of each group, that of `first_pairs`; `off_policy` rows come last.
    Metrics: implicit_reward/correct, implicit_reward/incorrect (means over the rollouts of a kind
      that have tokens), paired_groups (groups, with `one_pair`).
    """

    def apply(signals, context, state):
        rollouts, mask = context.rollouts, signals.mask
        reward = scale * log_ratio_sum(context.stats.logp, rollouts.reference_logp, mask)
        correct, written = is_correct(rollouts.outcome), has_tokens(mask)
        known = correct, rollouts.group, rollouts.rollout_id, written
        partner = (
            first_pairs(*known, rollouts.records["off_policy"])
            if one_pair
            else correct_incorrect_pairs(*known)
        )
        value = loss(ImplicitRewards(reward, correct, written, partner, scale))
        metrics = {
            "implicit_reward/correct": masked_mean(reward, written & correct),
            "implicit_reward/incorrect": masked_mean(reward, written & ~correct),
        }
        if one_pair:
            metrics["paired_groups"] = jnp.sum(correct & (partner >= 0)).astype(reward.dtype)
        return replace(signals, term=signals.term + value), state, metrics

    reads = {"logp", "reference_logp", "batch_statistics"} | ({"off_policy"} if one_pair else set())
    return Transform(apply, reads=reads)


def first_of_pairs(given: ImplicitRewards) -> Bool[Array, "B"]:
    """The correct rows that have a partner."""
    return given.correct & (given.partner >= 0)
