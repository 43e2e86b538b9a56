"""DPH-RL's vectors: the rows of another policy are the rehearsed ones."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask, only, per_group, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.dph_rl import (
    alpha_generator,
    forward_kl_generator,
    jensen_shannon_generator,
    off_policy_divergence,
)
from rlvr_jax.objectives import group_mean, token_ratio

DEFINITION = "JS by its definition is no part of the recipe"
LEFT_OUT = {
    "jsdef_pef": DEFINITION,
    "djsdef_pef": DEFINITION,
    "jsdef_exp": DEFINITION,
    "djsdef_exp": DEFINITION,
}


def outputs(case, hyper):
    batch, logp = golden.rollouts(case), golden.stats(case).logp
    trust = {
        "clip_low": hyper["clip_low"],
        "clip_high": hyper["clip_high"],
        "dual_clip": hyper["clip_c"],
    }
    plain = golden.evaluate(recipe("dph_rl", coefficient=0.0, **trust), case)

    def rehearsed(values):
        return np.where(np.asarray(batch.records["off_policy"])[:, None], on_mask(values, batch), 0)

    found = {
        "perfect": per_group(group_mean(batch.outcome, batch.group) == 1, case),
        "advantages": per_rollout(plain.signals.advantage, plain.batch),
        "pg_loss": plain.loss,
        "u": rehearsed(token_ratio(logp, batch.reference_logp, batch.mask)),
    }
    divergences = {
        "forward": forward_kl_generator,
        "js": jensen_shannon_generator,
        "alpha": alpha_generator(hyper["alpha"]),
    }
    for name, divergence in divergences.items():
        coefficient = hyper[f"coef_{name}"]
        done = golden.evaluate(
            recipe("dph_rl", coefficient=coefficient, divergence=divergence, **trust), case
        )
        alone = golden.evaluate(only(off_policy_divergence(1.0, divergence)), case)
        found |= {
            **done.outputs(f"_{name}"),
            f"f_{name}": rehearsed(divergence(logp, batch.reference_logp, batch.old_logp)),
            f"div_{name}": alone.loss,
            f"ddiv_{name}": alone.dlogits,
        }
    return found
