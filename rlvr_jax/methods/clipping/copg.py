"""CoPG: a policy gradient for rollouts of any origin, with the other responses as baseline.

Flet-Berliac et al. 2024, "Contrastive Policy Gradient", https://arxiv.org/abs/2406.19185

    R_β(y) = R - β Σ_t (logp - reference_logp)
    c_i    = R_β(y_i) - mean of R_β over the other responses to the prompt, without gradient
    loss   = -mean_i c_i Σ_t logp_it

The solution of KL-regularized RL makes R_β one constant per prompt. The loss pulls each pair of
responses towards it. Its gradient is that of the mean of (R_β(y) - R_β(y'))² / (4 β) over pairs. It
requires neither ratio nor clip. A reconstruction from the abstract and the known form of the
method; β = 0.1 is ours.

Reports: IPO and the policy gradient are special cases. Tests are a bandit and summaries with a
learned reward (abstract, no numbers).
Traps: Equal rewards still pull the responses to equal log-ratios. Log-ratios are sums, so long
responses require a smaller β. Old data with large log-ratios dominate, because nothing is clipped.
A group of one has gradient 0.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Transform, group_others_mean, has_tokens, objective, part, reinforce
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Positive


@part(writes={"advantage"})
def regularized_leave_one_out(coefficient: Positive) -> Transform:
    """A_i = c_i; a response without tokens is not compared.

    Metrics: regularized_return (mean of the regularized return R_β over the rollouts with tokens).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        logp = jax.lax.stop_gradient(context.stats.logp)
        log_ratio = masked_sum(logp - rollouts.reference_logp, signals.mask, axis=1)
        own = rollouts.reward - coefficient * log_ratio
        written = has_tokens(signals.mask)
        advantage = (own - group_others_mean(own, rollouts.group, written))[:, None]
        signals = replace(signals, advantage=jnp.where(signals.mask, advantage, 0))
        return signals, state, {"regularized_return": masked_mean(own, written)}

    return Transform(apply, reads={"logp", "reference_logp", "batch_statistics"})


def copg(kl_coefficient: Positive = 0.1) -> Recipe:
    """Multiplies the response's log-prob by the leave-one-out advantage of the regularized return.

    Args:
      kl_coefficient: weight of the log ratio to the reference (β).
    """
    advantage = regularized_leave_one_out(kl_coefficient)
    surrogate = reinforce(corrected=True)
    return Recipe(
        objective(advantage=advantage, surrogate=surrogate, aggregation=rollout_mean_token_sum())
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
    shown=LOSS_ON_BRACKETS,
)
