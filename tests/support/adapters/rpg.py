"""RPG's vectors: four divergences, each in five forms of the loss."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.rpg import (
    forward_kl,
    old_policy_kl,
    regularize_advantage,
    reverse_kl,
    unnormalized_forward_kl,
    unnormalized_reverse_kl,
)
from rlvr_jax.objectives import (
    group_centered,
    importance_weighted,
    objective,
    ppo_clip,
    token_mean,
    token_ratio,
)
from rlvr_jax.objectives.surrogates.frozen_weights import weighted_reinforce
from rlvr_jax.types import Recipe

LEFT_OUT = {}
# The divergence, and where the released code clamps its penalty.
DIVERGENCES = {
    "fkl": (forward_kl, np.inf),
    "rkl": (reverse_kl, 10.0),
    "ufkl": (unnormalized_forward_kl, 10.0),
    "urkl": (unnormalized_reverse_kl, 10.0),
}


def outputs(case, hyper):
    beta, low, high, dual = hyper["beta"], hyper["eps_low"], hyper["eps_high"], hyper["c"]
    batch = golden.rollouts(case)
    ratio = token_ratio(golden.stats(case).logp, batch.old_logp, batch.mask)

    def evaluate(surrogate, transforms=(), regularizers=()):
        own = objective(
            advantage=group_centered(),
            transforms=transforms,
            surrogate=surrogate,
            regularizers=regularizers,
            aggregation=token_mean(),
        )
        return golden.evaluate(Recipe(own), case)

    rpg = recipe("rpg")
    found = {"advantages": row_advantages(rpg, batch), "w": on_mask(ratio, batch)}
    for name, (divergence, limit) in DIVERGENCES.items():
        settings = {"clip_low": low, "clip_high": high, "dual": dual, "divergence": divergence}
        clipped = golden.evaluate(recipe("rpg", kl_coefficient=beta, **settings), case)
        pushed = [regularize_advantage(divergence, beta)]
        free = evaluate(importance_weighted(), regularizers=[old_policy_kl(divergence, beta)])
        reinforce = evaluate(weighted_reinforce(), pushed)
        dual_clip = evaluate(ppo_clip(low, high, dual=dual), pushed)
        code = evaluate(
            ppo_clip(low, high, dual=dual),
            regularizers=[old_policy_kl(divergence, beta, limit)],
        )
        found |= {
            f"weight_{name}": on_mask(ratio * reinforce.signals.advantage, batch),
            f"hat_{name}": reinforce.signals.advantage,
            f"fd_{name}": free.loss,
            f"reinforce_{name}": reinforce.loss,
            f"dlogits_{name}": reinforce.dlogits,
            f"clip_tok_{name}": clipped.token_loss,
            f"clip_{name}": clipped.loss,
            f"dlogits_clip_{name}": clipped.dlogits,
            f"dual_{name}": dual_clip.loss,
            f"dlogits_dual_{name}": dual_clip.dlogits,
            f"code_{name}": code.loss,
        }
    return found
