"""G²RPO-A's vectors: the controller over graded rewards as accuracies, and the loss."""

import golden_vectors as golden
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.methods.guidance.g2rpo_a import WINDOW, Guidance, guidance_after

LEFT_OUT = {"guided_rows": "the first rows of each group, inside `guide_first_rows`"}


def outputs(case, hyper):
    method = recipe_with(hyper, "g2rpo_a", longest=hyper["max_len"])
    # One update for each batch: the old policy is the current one.
    done = golden.evaluate(method, case, batch=golden.rollouts(case).replace(old_logp=None))

    def lengths(first):
        state, found = Guidance(np.int32(first), np.int32(0), np.zeros(WINDOW)), []
        for accuracy in golden.inputs(case)["soft_rewards"]:
            state = guidance_after(state, float(accuracy), hyper["max_len"])
            found.append(int(state.length))
        return found

    return {
        **done.outputs(),
        "guidance_length": lengths(hyper["max_len"]),
        "guidance_length_from_100": lengths(100),
    }
