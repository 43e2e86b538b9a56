"""PACS: the verdict is a label, and the policy's own log ratio is what predicts it.

Li et al. 2025, "Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR",
https://arxiv.org/abs/2509.02522

    r_i  = β Σ_t (logp_it - old_logp_it);  ψ_i = r_i - mean of r over the other answers
    w_i  = N / (2 N_own) in a group with right and wrong answers, 1 in others
    loss = mean_i w_i · cross-entropy(σ(ψ_i), R_i)

Gradient flows through every answer of a group. The residual σ(ψ) - R plays the critic, ∇ψ the
actor; the loss saturates where PPO would clip. On-policy ψ is 0 and a group with one outcome has
gradient 0, since the ψ of a group sum to 0. r sums over tokens: long answers have larger scores.
R is the outcome, without what shapes the reward. Answers without tokens count in no group.
β = 1 and the balance are the authors' defaults; their code sums over the padding too, whose two
log-probs it takes to be equal, and keeps groups whole within a micro-batch.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Surrogate, Transform
from rlvr_jax.objectives.statistics.groups import group_count, group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part


def leave_one_out_score(
    values: Float[Array, "B"], group: Int[Array, "B"], where: Bool[Array, "B"] | None = None
) -> Float[Array, "B"]:
    """ψ_i = x_i - mean of the others of the group, with gradient through all of them.

    0 in a group of one. Where `group_others_mean` compares values that are data, here they are
    the policy's: at the first update all are equal, and the gradient must not vanish.

    Args:
      values: x.
      group: id of the group of each rollout.
      where: the rows that count; the others have 0. The ψ of those that count sum to 0.
    """
    size = group_count(group, where).astype(values.dtype)
    score = (size * values - group_sum(values, group, where)) / jnp.maximum(size - 1, 1)
    return score if where is None else jnp.where(where, score, 0)


@part(reads={"logp", "batch_statistics"}, writes={"advantage"})
def outcome_residual(scale: Positive) -> Transform:
    """A_i = R_i - σ(ψ_i): what `outcome_classification` has not yet predicted of the outcome.

    It vanishes where the outcome is predicted, and is ±½ before the first update, in groups of one
    or of equal outcomes too.

    Args:
      scale: β, positive.
    Metrics: predicted_share, of the rollouts with tokens those with ψ on the side of their outcome.
    """

    def apply(signals, context, state):
        outcome = context.rollouts.outcome
        score = jax.lax.stop_gradient(_outcome_score(signals, context, scale))
        advantage = jnp.where(signals.mask, (outcome - jax.nn.sigmoid(score))[:, None], 0)
        predicted = ((score > 0) == (outcome > 0.5)).astype(outcome.dtype)
        metrics = {"predicted_share": masked_mean(predicted, has_tokens(signals.mask))}
        return replace(signals, advantage=advantage), state, metrics

    return apply


@part(writes={"weight"})
def balance_outcomes() -> Transform:
    """Gives right and wrong answers to a prompt the same weight: weight' = weight · N / (2 N_own).

    N counts the answers of the group that have tokens, N_own those of them on the own side of
    outcome ½; a group with one side only keeps its weights.
    """

    def apply(signals, context, state):
        outcome, group = context.rollouts.outcome, context.rollouts.group
        right, written = outcome > 0.5, has_tokens(signals.mask)
        size = group_count(group, written)
        own = jnp.where(
            right, group_count(group, written & right), group_count(group, written & ~right)
        )
        ratio = size.astype(outcome.dtype) / jnp.maximum(2 * own, 1).astype(outcome.dtype)
        weight = jnp.where((own == size) | ~written, 1, ratio)[:, None]
        return replace(signals, weight=signals.weight * weight), state, {}

    return apply


@part
def outcome_classification(scale: Positive) -> Surrogate:
    """The cross-entropy of the outcome and σ(ψ), ψ the policy's own score of the answer.

    ψ_i = r_i - mean of r over the other answers, r = β Σ_t (logp_t - old_logp_t). Its gradient by
    logp is -`outcome_residual` times that of ψ, which reaches every answer of the group. The label
    is the outcome and not the reward: with what is shaped, below 0 or above 1, the cross-entropy
    has no lower bound. An answer without tokens has no score and is no other answer.

    Args:
      scale: β, positive.
    """

    def loss(signals, context):
        score = _outcome_score(signals, context, scale)
        # -R log σ(ψ) - (1 - R) log(1 - σ(ψ)), without a logarithm of 0
        entropy = jax.nn.softplus(score) - context.rollouts.outcome * score
        return jnp.broadcast_to(entropy[:, None], signals.mask.shape)

    def prepare(signals, context):
        own = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=own)

    def remark(plan):
        if plan.group_size == 1:
            return "has no gradient: a group of one has score 0 whatever the policy does."
        if plan.updates_per_batch == 1:
            return "predicts nothing: with one update per batch every score is 0."
        return None

    reads = frozenset({"logp", "batch_statistics"})
    return Surrogate(prepare, loss, remark, reads)


def _outcome_score(signals, context, scale):
    log_ratio = masked_sum(context.stats.logp - context.old_logp, signals.mask, axis=1)
    written = has_tokens(signals.mask)
    return leave_one_out_score(scale * log_ratio, context.rollouts.group, written)


def pacs(scale: float = 1.0, balanced: bool = True) -> Recipe:
    """The cross-entropy of outcomes and the policy's scores, as supervised learning.

    Args:
      scale: of the log ratio in the score (β).
      balanced: whether right and wrong answers to a prompt weigh the same.
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
    pacs,
    "Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR",
    "https://arxiv.org/abs/2509.02522",
    changes="advantage, weight, surrogate",
    baseline="other",
    reports="Qwen2.5-7B, AIME 2025: pass@256 59.78 %, 13.32 over PPO and 14.36 over GRPO",
    traps=(
        "no trust region: over many updates the scores grow until labels are fitted; a sum over "
        "tokens makes long answers score more; shaped rewards are not read; a group split over "
        "micro-batches is wrong"
    ),
)
