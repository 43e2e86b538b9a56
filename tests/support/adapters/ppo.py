"""PPO's vectors; `_dual` and `_bessel` are verl's form. The critic is values + 0.3 · hidden."""

import golden_vectors as golden
import jax
import jax.numpy as jnp

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.advantages.critics import value_loss
from rlvr_jax.objectives.advantages.returns import (
    generalized_advantage,
    generalized_advantages,
    token_rewards,
)
from rlvr_jax.objectives.advantages.whitening import whitened
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Recipe


def outputs(case, hyper):
    gamma, lam, lam2, clip = hyper["gamma"], hyper["lam"], hyper["lam2"], hyper["clip"]
    ppo = recipe("ppo", discount=gamma, trace_decay=lam, clip_low=clip, clip_high=clip)
    done = golden.evaluate(ppo, case)
    verl = objective(
        whitened(generalized_advantage(gamma, lam2), ddof=1, epsilon=1e-8, floor=0.0),
        surrogate=ppo_clip(clip, clip, ratio=clamped_token_ratio, dual=hyper["dual"]),
        aggregation=token_mean(),
    )
    dual = golden.evaluate(Recipe(verl), case)

    mask = done.batch.mask
    values = jnp.where(mask, done.batch.records["values"], 0)
    rewards = token_rewards(done.batch.reward, mask)
    advantages = generalized_advantages(rewards, values, mask, gamma, lam)
    returns = jnp.where(mask, advantages + values, 0)
    predicted = values + hyper["vpred_scale"] * golden.inputs(case)["hidden"][..., 0]

    def critic(values_now):
        losses = value_loss(values_now, values, returns, hyper["value_clip"])
        return token_mean()(losses, mask), jnp.where(mask, losses, 0)

    (loss, losses), gradient = jax.value_and_grad(critic, has_aux=True)(predicted)
    return {
        **done.outputs(),
        **dual.outputs("_dual"),
        "token_rewards": rewards,
        "advantages_raw": advantages,
        "advantages_raw_lam2": generalized_advantages(rewards, values, mask, gamma, lam2),
        "returns": returns,
        "advantages_bessel": dual.signals.advantage,
        "value_token_loss": losses,
        "value_loss": loss,
        "dvpred": gradient,
    }
