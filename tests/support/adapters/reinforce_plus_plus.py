"""REINFORCE++'s vectors; `_bessel` is verl's whitening, `_baseline` the form with groups."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.advantages.returns import discounted_returns, reward_to_go, token_rewards
from rlvr_jax.objectives.advantages.whitening import whitened
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Recipe


def one_form(case, hyper, soft, group_baseline):
    gamma, beta, clip = hyper["gamma"], hyper["kl_coef"], hyper["clip"]
    method = recipe(
        "reinforce_plus_plus",
        discount=gamma,
        kl_coefficient=beta,
        clip_low=clip,
        clip_high=clip,
        group_baseline=group_baseline,
    )
    done = golden.evaluate(method, case, soft)
    batch = done.batch
    if group_baseline:
        rewards = token_rewards(batch.reward - group_mean(batch.reward, batch.group), batch.mask)
        estimator = reward_to_go(gamma, center=group_mean)
    else:
        log_ratio = batch.old_logp - batch.reference_logp
        rewards = token_rewards(batch.reward, batch.mask, log_ratio, beta)
        estimator = reward_to_go(gamma, beta)
    verl = objective(
        whitened(estimator, ddof=1, epsilon=1e-8, floor=0.0),
        surrogate=ppo_clip(clip, clip),
        aggregation=token_mean(),
    )
    return {
        **done.outputs(),
        "token_rewards": rewards,
        "returns": discounted_returns(rewards, batch.mask, gamma),
        "advantages_bessel": golden.evaluate(Recipe(verl), case, soft).signals.advantage,
    }


@both
def outputs(case, hyper, soft):
    grouped = one_form(case, hyper, soft, True)
    return {
        **one_form(case, hyper, soft, False),
        **{f"{name}_baseline": value for name, value in grouped.items()},
    }
