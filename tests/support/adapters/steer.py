"""STEER's vectors: linear weights, and exponential ones."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.steer import (
    damp_entropy_change_exponentially,
    estimated_entropy_change,
)
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Recipe

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    linear = recipe(
        "steer",
        weight_low=hyper["w_min"],
        weight_high=hyper["w_max"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        dual_clip=hyper["dual"],
    )
    exponential = Recipe(
        objective(
            advantage=group_normalized(hyper["eps"]),
            transforms=[damp_entropy_change_exponentially(hyper["w_min"], hyper["floor"])],
            surrogate=ppo_clip(hyper["clip_low"], hyper["clip_high"], dual=hyper["dual"]),
            aggregation=token_mean(),
        )
    )
    done = golden.evaluate(linear, case, soft)
    other = golden.evaluate(exponential, case, soft)
    batch, stats, advantage = done.batch, golden.stats(case), done.signals.advantage
    change = estimated_entropy_change(advantage, stats.logp, batch.old_logp, stats.entropy)
    return {
        "entropy": on_mask(stats.entropy, batch),
        "advantages": advantage,
        "omega": on_mask(change, batch),
        "weight_linear": jnp.where(batch.mask, done.signals.weight, 0),
        "weight_exp": jnp.where(batch.mask, other.signals.weight, 0),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "loss_exp": other.loss,
        "dlogits_exp": other.dlogits,
    }
