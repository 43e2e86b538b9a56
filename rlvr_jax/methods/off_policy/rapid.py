"""RAPID: many off-policy steps on one big batch, with weights and baseline of the current policy.

"RAPID: An Efficient Reinforcement Learning Algorithm for Small Language Models"

    w_i  = min(π(y_i) / π_old(y_i), η), without gradient
    V(x) = mean over the group of w_i R_i,    A_i = R_i - V(x)
    loss = -mean over rollouts of w_i A_i Σ_t logp_it

Beyond η (`cap`), a rollout still has a gradient, with bounded weight; a clip would remove it. In
the first update w = 1, and the method is REINFORCE with a group mean. Later the mean of w is not 1,
and in a group of equal rewards A is not 0. A reconstruction from the abstract and reviews: η is the
authors'. The ratio of the whole rollout as w is ours, as is the form per token. That form,
`per_token=True`, is min(ρ_t, η) on the token mean, with the same A.

Left out: sampling for many updates at once.
Reports: models of 0.5B to 1.5B on MBPP+, MATH and MiniF2F: 11 to 34 % less time at equal or better
accuracy.
Traps: Far beyond the paper's 512 tokens, ratios of whole responses degenerate to 0 or η. Groups of
correct responses have advantages after the first update.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Transform, at_one_update, group_mean, objective, part, token_ratio
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_sum
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum, token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import LOSS_ON_BRACKETS, Mask, Method, Recipe, Rows, Values, replace
from rlvr_jax.types.hyperparameters import AtLeastOne


@part(reads={"logp", "batch_statistics"}, writes={"advantage"})
def reweighted_advantage(cap: AtLeastOne) -> Transform:
    """A_i = R_i - V, V the mean of w R over the group, with w the capped ratios of whole rollouts.

    Off-policy, equal rewards and groups of one have advantages that are not 0, as the mean of w is
    not 1.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        weight = capped_rollout_weight(context.stats.logp, context.old_logp, rollouts.mask, cap)
        value = group_mean(weight * rollouts.reward, rollouts.group)
        advantage = (rollouts.reward - value)[:, None]
        return replace(signals, advantage=jnp.where(signals.mask, advantage, 0)), state, {}

    return apply


def capped_rollout_weight(logp: Values, old_logp: Values, mask: Mask, cap: float) -> Rows:
    """w_i = min(Π_t ρ_it, η), without gradient; the cap acts before exp, so w is never infinite.

    Args:
      logp: of the current policy, nats, [B, T].
      old_logp: of the policy that sampled, nats, [B, T].
      mask: response tokens that count, bool [B, T].
      cap: largest weight, at least 1 (η).
    """
    log_ratio = masked_sum(jax.lax.stop_gradient(logp) - old_logp, mask, axis=1)
    return jnp.exp(jnp.minimum(log_ratio, jnp.log(jnp.asarray(cap, log_ratio.dtype))))


_idle = at_one_update("has no effect: with one update per batch every weight is 1.")


@part(reads={"logp"}, writes={"weight"}, remark=_idle)
def weigh_by_rollout_ratio(cap: AtLeastOne) -> Transform:
    """weight' = weight · min(Π_t ρ_it, η) on all tokens of a rollout.

    Metrics: capped_fraction (of the tokens).
    """

    def apply(signals, context, state):
        mask = context.rollouts.mask
        weight = capped_rollout_weight(context.stats.logp, context.old_logp, mask, cap)[:, None]
        return _weighed(signals, jnp.broadcast_to(weight, mask.shape), cap, state)

    return apply


@part(reads={"logp"}, writes={"weight"}, remark=_idle)
def weigh_by_token_ratio(cap: AtLeastOne) -> Transform:
    """weight' = weight · min(ρ_t, η).

    Metrics: capped_fraction (of the tokens).
    """

    def apply(signals, context, state):
        ratio = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return _weighed(signals, jnp.minimum(jax.lax.stop_gradient(ratio), cap), cap, state)

    return apply


def _weighed(signals, weight, cap, state):
    metrics = {"capped_fraction": masked_mean(weight >= cap, signals.mask)}
    weight = jnp.where(signals.mask, signals.weight * weight, signals.weight)
    return replace(signals, weight=weight), state, metrics


def rapid(cap: AtLeastOne = 2.0, per_token: bool = False) -> Recipe:
    """Applies REINFORCE with capped importance weights and a reweighted baseline.

    Args:
      cap: largest weight (η).
      per_token: whether weights are those of single tokens, with the token mean.
    """
    weigh = weigh_by_token_ratio if per_token else weigh_by_rollout_ratio
    return Recipe(
        objective=objective(
            advantage=reweighted_advantage(cap),
            transforms=[weigh(cap)],
            surrogate=reinforce(corrected=True),
            aggregation=token_mean() if per_token else rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    rapid,
    changes="advantage, weight, surrogate",
    baseline="other",
    gradient="stopped",
    evidence="reconstruction",
    shown=LOSS_ON_BRACKETS,
)
