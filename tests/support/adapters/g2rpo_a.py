"""G²RPO-A's vectors: the controller over graded rewards as accuracies, and the loss."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.g2rpo_a import WINDOW, Guidance, guidance_after

LEFT_OUT = {"guided_rows": "the first rows of each group, inside `guide_first_rows`"}


def outputs(case, hyper):
    method = recipe(
        "g2rpo_a",
        guided=hyper["guided"],
        longest=hyper["max_len"],
        kl_coefficient=hyper["beta"],
        epsilon=hyper["std_eps"],
    )
    # One update for each batch: the old policy is the current one.
    done = golden.evaluate(method, case, batch=golden.rollouts(case).replace(old_logp=None))

    def lengths(first):
        state, found = Guidance(np.int32(first), np.int32(0), np.zeros(WINDOW)), []
        for accuracy in golden.inputs(case)["soft_rewards"]:
            state = guidance_after(state, float(accuracy), hyper["max_len"])
            found.append(int(state.length))
        return found

    return {
        "guidance_length": lengths(hyper["max_len"]),
        "guidance_length_from_100": lengths(100),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
