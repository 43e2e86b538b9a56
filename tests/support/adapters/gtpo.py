"""GTPO's vectors. The search for conflicts sees token ids modulo 3: random ids never agree."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.gtpo import find_conflicts
from rlvr_jax.objectives import group_mean, masked_mean

RELEASED = "the released loss, which no recipe has"
LEFT_OUT = {"n_conflict": RELEASED, "loss_released": RELEASED, "dlogits_released": RELEASED}


def outputs(case, hyper):
    method = recipe(
        "gtpo",
        positive_weight=hyper["pos_weight"],
        negative_weight=hyper["neg_weight"],
        entropy_threshold=hyper["entropy_threshold"],
        entropy_coefficient=hyper["entropy_coef"],
    )
    whole = golden.rollouts(case)
    batch = whole.replace(tokens=whole.tokens % 3)
    stats_of = functools.partial(golden.token_stats, tokens=whole.tokens)
    done = golden.evaluate(method, case, stats_of=stats_of, batch=batch)
    raw = batch.reward - group_mean(batch.reward, batch.group)
    forward, backward = find_conflicts(jnp.where(batch.mask, raw[:, None], 0), batch)
    return {
        **done.outputs(),
        "advantages_raw": raw,
        "advantages": per_rollout(done.signals.advantage, batch, empty=raw),
        "entropy_mean": masked_mean(golden.stats(case).entropy, batch.mask, axis=1),
        "conflict_forward": forward,
        "conflict_backward": backward,
        "token_weight": jnp.where(batch.mask, done.signals.weight, 0),
    }
