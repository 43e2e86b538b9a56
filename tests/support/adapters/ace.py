"""ACE's vectors; `_relu` has max(c, 0) in place of softplus(c)."""

import golden_vectors as golden
import jax

from rlvr_jax.methods import recipe

INSIDE = "a step on the way to the advantages"
LEFT_OUT = {"confidence_shift": INSIDE, "factor": INSIDE, "factor_relu": INSIDE}


def outputs(case, hyper):
    found = {}
    for suffix, gate in (("", jax.nn.softplus), ("_relu", jax.nn.relu)):
        method = recipe(
            "ace",
            strength=hyper["alpha"],
            gate=gate,
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
            epsilon=hyper["eps"],
        )
        done = golden.evaluate(method, case)
        found |= {
            f"advantages{suffix}": done.signals.advantage,
            f"token_loss{suffix}": done.token_loss,
            f"loss{suffix}": done.loss,
            f"dlogits{suffix}": done.dlogits,
        }
    return found
