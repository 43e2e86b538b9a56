"""Clip-Cov's vectors. Their draw is the first eligible tokens in row-major order."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask

from rlvr_jax.objectives import (
    drop_high_covariance,
    fraction_of,
    group_normalized,
    is_clipped,
    masked_count,
    objective,
    ppo_clip,
    token_covariance,
    token_mean,
)
from rlvr_jax.types import Recipe


def first(eligible, k, key, rollout_id):
    del key, rollout_id
    order = jnp.cumsum(eligible.ravel().astype(jnp.int32)).reshape(eligible.shape)
    return eligible & (order <= k)


def clip_cov(hyper, choice):
    """The composition of the method with a choice that is not random."""
    drop = drop_high_covariance(
        hyper["ratio"], low=hyper["cov_low"], high=hyper["cov_high"], choice=choice
    )
    return Recipe(
        objective(
            advantage=group_normalized(hyper["eps"]),
            transforms=[drop],
            surrogate=ppo_clip(low=hyper["clip"], high=hyper["clip"]),
            aggregation=token_mean(),
        )
    )


@both
def outputs(case, hyper, soft):
    done = golden.evaluate(clip_cov(hyper, first), case, soft)
    none = golden.evaluate(
        clip_cov(hyper, lambda eligible, *_: jnp.zeros_like(eligible)), case, soft
    )
    every = golden.evaluate(clip_cov(hyper, lambda eligible, *_: eligible), case, soft)
    batch, advantage = done.batch, done.signals.advantage
    covariance = token_covariance(advantage, golden.stats(case).logp, batch.mask)
    eligible = batch.mask & (every.signals.weight == 0)
    available = masked_count(eligible)
    wanted = jnp.maximum(fraction_of(hyper["ratio"], masked_count(batch.mask)), 1)
    return {
        **done.outputs(),
        "advantages": advantage,
        "cov": covariance,
        "already_clipped": on_mask(is_clipped(done.signals), batch),
        "eligible": eligible,
        "n_eligible": available,
        "n_pick": jnp.minimum(wanted, available),
        "picked_first": batch.mask & (done.signals.weight == 0),
        "token_loss_before": none.token_loss,
        "loss_none_picked": none.loss,
        "loss_all_eligible": every.loss,
    }
