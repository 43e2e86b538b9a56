"""Dr. GRPO's vectors; `loss_verl` divides by the length constant alone."""

import golden_vectors as golden
from adapters.common import both, recipe_with

from rlvr_jax.objectives import fixed_length_sum


@both
def outputs(case, hyper, soft):
    length = hyper["max_len"] or golden.rollouts(case).mask.shape[1]
    dr_grpo = recipe_with(hyper, "dr_grpo", max_length=length)
    done = golden.evaluate(dr_grpo, case, soft)
    return {
        **done.outputs(),
        "loss_verl": fixed_length_sum(length)(done.token_loss, done.batch.mask),
    }
