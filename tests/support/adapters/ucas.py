"""UCAS's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, recipe_with, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.ucas import standardized_certainty
from rlvr_jax.objectives import masked_sum, self_certainty

INSIDE = "a step on the way to the advantages"
LEFT_OUT = {"logit_minmax": INSIDE, "weight": INSIDE, "weight_soft": INSIDE}


@both
def outputs(case, hyper, soft):
    method = recipe_with(
        hyper,
        "ucas",
        positive_rate=hyper["beta_pos"],
        negative_rate=hyper["beta_neg"],
        logit_coefficient=hyper["token_coef"],
    )
    done = golden.evaluate(method, case, soft)
    batch = done.batch
    certainty = self_certainty(batch.records["old_logsumexp"], batch.records["old_mean_logit"])
    total = masked_sum(certainty, batch.mask, axis=1)
    return {
        **done.outputs(),
        "self_certainty": on_mask(certainty, batch),
        "certainty_sum": total,
        "certainty_z": standardized_certainty(total, batch.mask, batch),
        "grpo_advantages": row_advantages(recipe("grpo"), batch),
    }
