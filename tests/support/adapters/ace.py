"""ACE's vectors; `_relu` has max(c, 0) in place of softplus(c)."""

import golden_vectors as golden
import jax
from adapters.common import recipe_with

INSIDE = "a step on the way to the advantages"
LEFT_OUT = {"confidence_shift": INSIDE, "factor": INSIDE, "factor_relu": INSIDE}


def outputs(case, hyper):
    found = {}
    for suffix, gate in (("", jax.nn.softplus), ("_relu", jax.nn.relu)):
        method = recipe_with(hyper, "ace", strength=hyper["alpha"], gate=gate)
        done = golden.evaluate(method, case)
        found |= done.outputs(suffix)
    return found
