"""GTPO's vectors. The search for conflicts sees token ids modulo 3: random ids never agree."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.gtpo import (
    charge_mean_entropy,
    conflict_length,
    divide_by_conflicts,
    find_conflicts,
    weigh_conflicts,
)
from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.ratios import on_policy_ratio
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.types import Recipe, replace

LEFT_OUT = {}


def outputs(case, hyper):
    method = recipe(
        "gtpo",
        positive_weight=hyper["pos_weight"],
        negative_weight=hyper["neg_weight"],
        entropy_threshold=hyper["entropy_threshold"],
        entropy_coefficient=hyper["entropy_coef"],
    )
    released = Recipe(
        objective(
            advantage=group_centered(),
            transforms=[
                weigh_conflicts(hyper["pos_weight"], hyper["neg_weight"]),
                divide_by_conflicts(),
                charge_mean_entropy(hyper["entropy_threshold"], hyper["entropy_coef"]),
            ],
            surrogate=importance_weighted(ratio=on_policy_ratio),
            aggregation=rollout_mean_token_mean(),
        )
    )
    whole = golden.rollouts(case)
    batch = replace(whole, tokens=whole.tokens % 3)
    stats_of = functools.partial(golden.token_stats, tokens=whole.tokens)
    done = golden.evaluate(method, case, stats_of=stats_of, batch=batch)
    other = golden.evaluate(released, case, stats_of=stats_of, batch=batch)
    raw = batch.reward - group_mean(batch.reward, batch.group)
    found = find_conflicts(jnp.where(batch.mask, raw[:, None], 0), batch)
    return {
        "advantages_raw": raw,
        "advantages": per_rollout(done.signals.advantage, batch, empty=raw),
        "entropy_mean": masked_mean(golden.stats(case).entropy, batch.mask, axis=1),
        "conflict_forward": found.forward,
        "conflict_backward": found.backward,
        "token_weight": jnp.where(batch.mask, done.signals.weight, 0),
        "n_conflict": jnp.maximum(conflict_length(found), 1),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "loss_released": other.loss,
        "dlogits_released": other.dlogits,
    }
