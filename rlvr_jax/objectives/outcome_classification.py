"""The verdict as a label that the policy's own log ratio predicts.

The score of an answer is ψ_i = r_i - mean of r over the other answers to the prompt, with
r = β Σ_t (logp_t - old_logp_t); gradient flows through every answer of the group.
Source: Li et al. 2025, https://arxiv.org/abs/2509.02522.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.objectives.groups import group_count, group_sum
from rlvr_jax.objectives.masked import masked_sum
from rlvr_jax.objectives.parts import Surrogate, Transform, describe, stateless
from rlvr_jax.objectives.ratios import token_ratio
from rlvr_jax.types import replace

__all__ = [
    "balance_outcomes",
    "leave_one_out_score",
    "outcome_classification",
    "outcome_residual",
]


def leave_one_out_score(values: Float[Array, "B"], group: Int[Array, "B"]) -> Float[Array, "B"]:
    """ψ_i = x_i - mean of the others of the group, with gradient through all of them.

    0 in a group of one. Where `group_others_mean` compares values that are data, here they are
    the policy's: at the first update all are equal, and the gradient must not vanish.
    """
    size = group_count(group).astype(values.dtype)
    return (size * values - group_sum(values, group)) / jnp.maximum(size - 1, 1)


def outcome_residual(scale: float) -> Transform:
    """A_i = R_i - σ(ψ_i): what `outcome_classification` has not yet predicted of the outcome.

    It vanishes where the outcome is predicted, and is ±½ before the first update, in groups of one
    or of equal rewards too.

    Args:
      scale: β, positive.
    Reads: reward, group, logp, old_logp. Writes: advantage. Metrics: predicted_share, of the
      rollouts with ψ on the side of their reward.
    Raises:
      ValueError: scale not positive.
    """
    _check_scale("outcome_residual", scale)

    def apply(signals, context, state):
        reward = context.rollouts.reward
        score = jax.lax.stop_gradient(_outcome_score(signals, context, scale))
        advantage = jnp.where(signals.mask, (reward - jax.nn.sigmoid(score))[:, None], 0)
        right = (score > 0) == (reward > 0.5)
        metrics = {"predicted_share": jnp.mean(right.astype(reward.dtype))}
        return replace(signals, advantage=advantage), state, metrics

    label = describe("outcome_residual", scale=float(scale))
    return stateless(apply, needs={"logp", "batch_statistics"}, label=label)


def balance_outcomes() -> Transform:
    """Gives right and wrong answers to a prompt the same weight: weight' = weight · N / (2 N_own).

    N_own counts the answers of the group on the own side of reward ½; a group with one side only
    keeps its weights.
    Reads: reward, group. Writes: weight. Metrics: none.
    """

    def apply(signals, context, state):
        reward, group = context.rollouts.reward, context.rollouts.group
        right = reward > 0.5
        size = group_count(group)
        own = jnp.where(right, group_count(group, right), group_count(group, ~right))
        ratio = size.astype(reward.dtype) / (2 * own).astype(reward.dtype)
        weight = jnp.where(own == size, 1, ratio)[:, None]
        return replace(signals, weight=signals.weight * weight), state, {}

    return stateless(apply, label="balance_outcomes()")


def outcome_classification(scale: float) -> Surrogate:
    """The cross-entropy of the outcome and σ(ψ), ψ the policy's own score of the answer.

    ψ_i = r_i - mean of r over the other answers, r = β Σ_t (logp_t - old_logp_t). Its gradient by
    logp is -`outcome_residual` times that of ψ, which reaches every answer of the group.

    Args:
      scale: β, positive.
    Raises:
      ValueError: scale not positive.
    """
    _check_scale("outcome_classification", scale)

    def loss(signals, context):
        score, reward = _outcome_score(signals, context, scale), context.rollouts.reward
        # -R log σ(ψ) - (1 - R) log(1 - σ(ψ)), without a logarithm of 0
        entropy = jax.nn.softplus(score) - reward * score
        return jnp.broadcast_to(entropy[:, None], signals.mask.shape)

    def prepare(signals, context):
        own = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=own)

    label = describe("outcome_classification", scale=float(scale))

    def remark(plan):
        if plan.group_size == 1:
            return f"{label} has no gradient: a group of one has score 0 whatever the policy does."
        if plan.updates_per_batch == 1:
            return f"{label} predicts nothing: with one update per batch every score is 0."
        return None

    needs = frozenset({"logp", "batch_statistics"})
    return Surrogate(prepare, loss, label, remark, needs)


def _outcome_score(signals, context, scale):
    log_ratio = masked_sum(context.stats.logp - context.old_logp, signals.mask, axis=1)
    return leave_one_out_score(scale * log_ratio, context.rollouts.group)


def _check_scale(function, scale):
    check_positive(function, scale=scale)
