"""RPG's vectors: four divergences."""

import golden_vectors as golden
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.rpg import (
    forward_kl,
    reverse_kl,
    unnormalized_forward_kl,
    unnormalized_reverse_kl,
)
from rlvr_jax.objectives import token_ratio

DIVERGENCES = {
    "fkl": forward_kl,
    "rkl": reverse_kl,
    "ufkl": unnormalized_forward_kl,
    "urkl": unnormalized_reverse_kl,
}
OTHER_FORMS = (
    *("weight", "hat", "fd", "reinforce", "dlogits"),
    *("dual", "dlogits_dual", "code"),
)
LEFT_OUT = {
    f"{form}_{name}": "another form of the loss, which is not built"
    for form in OTHER_FORMS
    for name in DIVERGENCES
}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    ratio = token_ratio(golden.stats(case).logp, batch.old_logp, batch.mask)
    found = {"advantages": row_advantages(recipe("rpg"), batch), "w": on_mask(ratio, batch)}
    for name, divergence in DIVERGENCES.items():
        rpg = recipe(
            "rpg",
            kl_coefficient=hyper["beta"],
            clip_low=hyper["eps_low"],
            clip_high=hyper["eps_high"],
            dual=hyper["c"],
            divergence=divergence,
        )
        clipped = golden.evaluate(rpg, case)
        found |= {
            f"clip_tok_{name}": clipped.token_loss,
            f"clip_{name}": clipped.loss,
            f"dlogits_clip_{name}": clipped.dlogits,
        }
    return found
