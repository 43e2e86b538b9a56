"""BAPO's vectors, under three sets of rewards."""

import golden_vectors as golden
import numpy as np
from adapters.common import recipe_with


def sparse(case):
    """1 minus the graded reward, but 0 in every third row."""
    graded = golden.inputs(case)["soft_rewards"]
    return np.where(np.arange(graded.size) % 3 == 0, 0, 1 - graded)


def outputs(case, hyper):
    bapo = recipe_with(
        hyper,
        "bapo",
        low_last=hyper["low_max"],
        high_last=hyper["high_max"],
        epsilon=hyper["adv_eps"],
        balance_epsilon=hyper["eps"],
    )
    batch = golden.rollouts(case)
    batches = {
        "": batch,
        "_soft": golden.rollouts(case, soft=True),
        "_sparse": batch.replace(reward=golden.array(sparse(case), np.float64)),
    }
    found = {}
    for suffix, own in batches.items():
        done = golden.evaluate(bapo, case, batch=own)
        values = {
            **done.outputs(),
            "bound_low": done.metrics["bound_low"],
            "bound_high": done.metrics["bound_high"],
            "balance_first": done.metrics["balance_first"],
            "balance_last": done.metrics["balance_last"],
            "n_steps": done.metrics["search_steps"],
        }
        found |= {f"{name}{suffix}": value for name, value in values.items()}
    return found
