"""Dr. GRPO's vectors; `loss_verl` divides by the length constant alone."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import fixed_length_sum

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    length = hyper["max_len"] or golden.rollouts(case).mask.shape[1]
    dr_grpo = recipe("dr_grpo", clip_low=hyper["clip"], clip_high=hyper["clip"], max_length=length)
    done = golden.evaluate(dr_grpo, case, soft)
    return {
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "loss_verl": fixed_length_sum(length)(done.token_loss, done.batch.mask),
        "dlogits": done.dlogits,
    }
