"""The vectors of NSR, PSR and W-REINFORCE."""

import golden_vectors as golden
from adapters.common import row_advantages

from rlvr_jax.methods import recipe


def outputs(case, hyper):
    clip = hyper["clip"]
    found = {}
    for name, pushes in {
        "psr": {"correct": 1.0, "incorrect": 0.0},
        "nsr": {"correct": 0.0, "incorrect": 1.0},
        "weighted": {"correct": hyper["weight"], "incorrect": 1.0},
    }.items():
        nsr = recipe("nsr", **pushes, clip_low=clip, clip_high=clip)
        done = golden.evaluate(nsr, case)
        found |= {
            **done.outputs(f"_{name}"),
            f"keep_{name}": row_advantages(nsr, done.batch) != 0,
        }
    return found
