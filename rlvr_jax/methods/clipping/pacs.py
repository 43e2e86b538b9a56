"""PACS: the outcome is a label, which the policy's log-ratio predicts.

Li et al. 2025, "Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR",
https://arxiv.org/abs/2509.02522

    r_i  = β Σ_t (logp_it - old_logp_it);  ψ_i = r_i - mean of r over the other responses
    w_i  = N / (2 N_own) in a group with correct and incorrect responses, 1 in others
    loss = mean_i w_i · cross-entropy(σ(ψ_i), R_i)

β is `scale`, w_i is on with `balanced`; both defaults are the authors'. Gradient flows through
every response of a group. The residual σ(ψ) - R acts as the critic, ∇ψ as the actor. The loss
saturates where PPO would clip. On-policy, ψ is 0. A group with one outcome then has gradient 0,
because the ψ of a group sum to 0. R is the outcome, not the reward: for rewards outside [0, 1] the
cross-entropy has no lower bound. Responses without tokens count in no group. The authors' code also
sums over the padding, whose two log-probs it assumes to be equal. Its groups are never split over
micro-batches.

Reports: Qwen2.5-7B, AIME 2025, pass@256: 59.78 %, 13.32 points over PPO and 14.36 over GRPO.
Traps: There is no trust region: over many updates the scores grow until the labels are fitted. The
score r is a sum over tokens, so long responses have larger scores. Shaped rewards are not read. A
group must not be split over micro-batches.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Surrogate, Transform, masked_mean, masked_sum, objective, with_ratio
from rlvr_jax.objectives.statistics.groups import group_count, group_sum, has_tokens
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.types import (
    LOSS_ON_BRACKETS,
    Ids,
    Method,
    Recipe,
    RowMask,
    Rows,
    is_correct,
    part,
    replace,
)
from rlvr_jax.types.hyperparameters import Positive


@part(reads={"logp", "batch_statistics"}, writes={"advantage"})
def outcome_residual(scale: Positive) -> Transform:
    """A_i = R_i - σ(ψ_i), the negative slope of the loss; before the first update it is ±½.

    Metrics: predicted_fraction (fraction of the rollouts whose ψ has the sign of R - ½).
    """

    def apply(signals, context, state):
        outcome = context.rollouts.outcome
        score = jax.lax.stop_gradient(_outcome_score(signals, context, scale))
        advantage = jnp.where(signals.mask, (outcome - jax.nn.sigmoid(score))[:, None], 0)
        predicted = ((score > 0) == is_correct(outcome)).astype(outcome.dtype)
        metrics = {"predicted_fraction": masked_mean(predicted, has_tokens(signals.mask))}
        return replace(signals, advantage=advantage), state, metrics

    return apply


def _outcome_score(signals, context, scale):
    """ψ, from the policy's log ratios."""
    log_ratio = masked_sum(context.stats.logp - context.old_logp, signals.mask, axis=1)
    written = has_tokens(signals.mask)
    return leave_one_out_score(scale * log_ratio, context.rollouts.group, written)


def leave_one_out_score(values: Rows, group: Ids, where: RowMask | None = None) -> Rows:
    """ψ_i = x_i - mean of the others of the group, with gradient through all; 0 in a group of one.

    `group_others_mean` has no gradient where all values are equal, as they are at the first update.
    """
    size = group_count(group, where).astype(values.dtype)
    score = (size * values - group_sum(values, group, where)) / jnp.maximum(size - 1, 1)
    return score if where is None else jnp.where(where, score, 0)


@part(writes={"weight"})
def balance_outcomes() -> Transform:
    """Multiplies the weight by w_i; the sides are outcomes above ½ and the others."""

    def apply(signals, context, state):
        outcome, group = context.rollouts.outcome, context.rollouts.group
        correct, written = is_correct(outcome), has_tokens(signals.mask)
        size = group_count(group, written)
        own = jnp.where(
            correct, group_count(group, written & correct), group_count(group, written & ~correct)
        )
        ratio = size.astype(outcome.dtype) / jnp.maximum(2 * own, 1).astype(outcome.dtype)
        weight = jnp.where((own == size) | ~written, 1, ratio)[:, None]
        return replace(signals, weight=signals.weight * weight), state, {}

    return apply


@part
def outcome_classification(scale: Positive) -> Surrogate:
    """The cross-entropy of R and σ(ψ), with gradient to every response of the group."""

    def loss(signals, context):
        score = _outcome_score(signals, context, scale)
        # -R log σ(ψ) - (1 - R) log(1 - σ(ψ)), without a logarithm of 0
        entropy = jax.nn.softplus(score) - context.rollouts.outcome * score
        return jnp.broadcast_to(entropy[:, None], signals.mask.shape)

    def remark(plan):
        if plan.group_size == 1:
            return "has no gradient: a group of one has score 0 for every policy."
        if plan.updates_per_batch == 1:
            return "predicts nothing: with one update per batch every score is 0."
        return None

    return Surrogate(with_ratio(), loss, remark, frozenset({"logp", "batch_statistics"}))


def pacs(scale: Positive = 1.0, balanced: bool = True) -> Recipe:
    """Fits the policy's scores to outcomes by cross-entropy, as supervised learning.

    Args:
      scale: factor of the log-ratio in the score (β).
      balanced: whether correct and incorrect responses to a prompt have equal weight.
    """
    return Recipe(
        objective=objective(
            advantage=outcome_residual(scale),
            transforms=[balance_outcomes()] if balanced else [],
            surrogate=outcome_classification(scale),
            aggregation=rollout_mean_token_mean(),
        )
    )


METHOD = Method(
    pacs, changes="advantage, weight, surrogate", baseline="other", shown=LOSS_ON_BRACKETS
)
