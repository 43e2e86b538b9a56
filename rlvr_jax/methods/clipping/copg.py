"""CoPG: a policy gradient for rollouts of any origin, with the other answers as baseline.

Flet-Berliac et al. 2024, "Contrastive Policy Gradient", https://arxiv.org/abs/2406.19185

    R_β(y) = R - β Σ_t (logp - reference_logp)
    c_i    = R_β(y_i) - mean of R_β over the other answers to the prompt, without gradient
    loss   = -mean_i c_i Σ_t logp_it

Where KL-regularized RL is solved, R_β is one constant per prompt; the loss pulls each pair of
answers to it. It has the gradient of the mean of (R_β(y) - R_β(y'))² / (4 β) over pairs, which is
`pairwise_regression(β)`, and needs neither ratio nor clip. Equal rewards still pull the answers to
equal log ratios; a group of one gives 0. Reconstructed from the abstract and the known form of the
method; β = 0.1 is ours, and sums over tokens want it smaller for long responses.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Surrogate, Transform
from rlvr_jax.objectives.statistics.groups import (
    group_count,
    group_mean,
    group_others_mean,
    group_sum,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import KLCoefficient, Positive
from rlvr_jax.types.parts import part


def regularized_return(
    reward: Float[Array, "B"], log_ratio: Float[Array, "B"], coefficient: float
) -> Float[Array, "B"]:
    """R - β log(π / π_ref) of whole responses: constant over y where KL-regularized RL is solved.

    Args:
      reward: R.
      log_ratio: Σ_t (logp_t - reference_logp_t), nats.
      coefficient: β.
    """
    return reward - coefficient * log_ratio


def group_pair_spread(
    values: Float[Array, "B"], group: Int[Array, "B"], where: Bool[Array, "B"] | None = None
) -> Float[Array, "B"]:
    """Mean over the other rollouts j of the group of (x_i - x_j)²; 0 in a group of one.

    Its mean over a group is twice the variance with n - 1.

    Args:
      values: x.
      group: id of the group of each rollout.
      where: the rows that count; of the others nothing is said.
    """
    count = group_count(group, where)
    others = jnp.maximum(count - 1, 1).astype(values.dtype)
    deviation = values - jax.lax.stop_gradient(group_mean(values, group, where))
    # Shifting both by one constant changes no difference, and keeps the squares small.
    size = count.astype(values.dtype)
    total, squares = group_sum(deviation, group, where), group_sum(deviation**2, group, where)
    return (size * deviation**2 - 2 * deviation * total + squares) / others


@part(writes={"advantage"})
def regularized_leave_one_out(coefficient: Positive) -> Transform:
    """A_i = R_β(y_i) - mean of R_β over the other answers, R_β the `regularized_return`.

    The value of the current policy enters; its gradient does not. Equal rewards give 0 only where
    the log ratios to the reference are equal too. An answer without tokens is no other answer.

    Args:
      coefficient: β, positive.
    Metrics: regularized_return, the mean over the rollouts with tokens.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        logp = jax.lax.stop_gradient(context.stats.logp)
        log_ratio = masked_sum(logp - rollouts.reference_logp, signals.mask, axis=1)
        own = regularized_return(rollouts.reward, log_ratio, coefficient)
        written = has_tokens(signals.mask)
        advantage = (own - group_others_mean(own, rollouts.group, written))[:, None]
        signals = replace(signals, advantage=jnp.where(signals.mask, advantage, 0))
        return signals, state, {"regularized_return": masked_mean(own, written)}

    reads = {"logp", "reference_logp", "batch_statistics"}
    return Transform(apply, reads=reads)


@part
def pairwise_regression(coefficient: Positive) -> Surrogate:
    """½ mean_{j ≠ i} (R_β(y_i) - R_β(y_j))² / (2 β) over the other answers to the prompt.

    Has the gradient of `reinforce` with the advantages of `regularized_leave_one_out`, and a value
    that says how far the policy is from the solution. The advantage of the chain is not read.

    Args:
      coefficient: β, positive.
    """

    def loss(signals, context):
        rollouts = context.rollouts
        distance = context.stats.logp - rollouts.reference_logp
        log_ratio = masked_sum(distance, signals.mask, axis=1)
        own = regularized_return(rollouts.reward, log_ratio, coefficient)
        spread = group_pair_spread(own, rollouts.group, has_tokens(signals.mask))
        pairs = spread / (4 * coefficient)
        return jnp.broadcast_to(pairs[:, None], signals.mask.shape)

    return Surrogate(
        _token_ratios, loss, reads=frozenset({"logp", "reference_logp", "batch_statistics"})
    )


@part
def log_ratio_regression(temperature: Positive) -> Surrogate:
    """(A_i - τ log(π(y_i) / π_old(y_i)))²: the log ratio of the response is fitted to A / τ.

    With `group_centered` the mean reward stands for the partition function.

    Args:
      temperature: τ, positive.
    """

    def loss(signals, context):
        log_ratio = masked_sum(context.stats.logp - context.old_logp, signals.mask, axis=1)
        return (signals.advantage - temperature * log_ratio[:, None]) ** 2

    def remark(plan):
        if plan.updates_per_batch == 1:
            return "is REINFORCE: with one update per batch every log ratio is 0."
        return None

    return Surrogate(_token_ratios, loss, remark)


def _token_ratios(signals, context):
    own = token_ratio(context.stats.logp, context.old_logp, signals.mask)
    return replace(signals, ratio=own)


def copg(kl_coefficient: KLCoefficient = 0.1) -> Recipe:
    """Leave-one-out advantages of the regularized return times the log-prob of the response."""
    return Recipe(
        objective=objective(
            advantage=regularized_leave_one_out(kl_coefficient),
            surrogate=reinforce(corrected=True),
            aggregation=rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    copg,
    "Contrastive Policy Gradient: Aligning LLMs on sequence-level scores in a supervised-friendly"
    " fashion",
    "https://arxiv.org/abs/2406.19185",
    changes="advantage, surrogate, regularizer",
    baseline="signal",
    gradient="stopped",
    evidence="reconstruction",
    reports=(
        "IPO and the policy gradient are special cases; tried on a bandit and on summaries with a "
        "learned reward (abstract)"
    ),
    traps=(
        "equal rewards still pull answers together; log ratios are sums, so β must shrink with the "
        "length; old data with large log ratios decide, as nothing is clipped; one answer per "
        "prompt gives 0"
    ),
)
