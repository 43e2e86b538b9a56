"""GDRO's vectors: scores after two steps on one batch, with the losses of the reference."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.methods.curricula.gdro import (
    adversarial_fractions,
    bin_losses,
    difficulty_bins,
    proportional_weights,
    updated_scores,
)
from rlvr_jax.objectives.statistics.groups import group_mean

ROLLOUTS = "numbers of rollouts per bin, which the method does not have"
PAPER = "the paper's weight, which no function gives: the method has the authors' form"
LEFT_OUT = {
    "arm_probability": ROLLOUTS,
    "arm_chosen": ROLLOUTS,
    "rollouts_used": ROLLOUTS,
    "multiplier": ROLLOUTS,
    "weight_paper": PAPER,
    "weight_paper_by_share": PAPER,
}


def outputs(case, hyper):
    edges, eta, gamma = hyper["edges"], hyper["eta"], hyper["gamma"]
    batch, graded = golden.rollouts(case), golden.rollouts(case, True)
    before = difficulty_bins(group_mean(graded.reward, graded.group), edges)
    bins = difficulty_bins(
        group_mean(batch.reward, batch.group), edges, before, hyper["hysteresis"]
    )
    num_bins, everyone = len(edges) + 1, jnp.ones(bins.shape, bool)
    steps = (1 - graded.reward, 1 - batch.records["component_rewards"].mean(axis=1))
    found = {}
    for suffix, by_fraction in (("", False), ("_by_share", True)):
        scores, seen = jnp.zeros(num_bins), jnp.zeros(num_bins, bool)
        for loss in steps:
            losses, present = bin_losses(loss, bins, everyone, num_bins, by_fraction)
            scores, seen = updated_scores(scores, seen, losses, present, hyper["ema"])
        fraction = adversarial_fractions(scores, present, eta, gamma)[bins]
        method = recipe_with(
            hyper,
            "gdro",
            edges=edges,
            rate=hyper["ema"],
            temperature=eta,
            mixing=gamma,
            by_fraction=by_fraction,
            kl_coefficient=0.0,
            bins=lambda rollouts: bins,
        )
        state = {"hard_bins_first": (scores, seen)}
        done = golden.evaluate(method, case, soft=True, state=state)
        found |= {
            **done.outputs(suffix),
            f"score{suffix}": scores,
            f"share{suffix}": fraction,
            f"weight{suffix}": proportional_weights(fraction, everyone, hyper["max_weight"]),
        }
    _, first = np.unique(batch.group, return_index=True)
    return found | {"prompt_bin": np.asarray(bins)[first]}
