"""UCAS's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.ucas import standardized_certainty
from rlvr_jax.objectives import self_certainty
from rlvr_jax.objectives.statistics.masked import masked_sum

INSIDE = "a step on the way to the advantages"
LEFT_OUT = {"logit_minmax": INSIDE, "weight": INSIDE, "weight_soft": INSIDE}


@both
def outputs(case, hyper, soft):
    method = recipe(
        "ucas",
        positive_rate=hyper["beta_pos"],
        negative_rate=hyper["beta_neg"],
        logit_coefficient=hyper["token_coef"],
        clip_low=hyper["clip"],
        clip_high=hyper["clip"],
    )
    done = golden.evaluate(method, case, soft)
    batch = done.batch
    certainty = self_certainty(batch.records["old_logsumexp"], batch.records["old_mean_logit"])
    total = masked_sum(certainty, batch.mask, axis=1)
    return {
        "self_certainty": on_mask(certainty, batch),
        "certainty_sum": total,
        "certainty_z": standardized_certainty(total, batch.mask, batch),
        "grpo_advantages": row_advantages(recipe("grpo"), batch),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
