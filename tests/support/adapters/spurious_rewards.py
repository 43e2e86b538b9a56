"""The vectors of random rewards in expectation: the mean over all rewards that a group can have."""

import itertools

import golden_vectors as golden
import jax
import numpy as np
from adapters.common import on_mask

from rlvr_jax.experience import column
from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.spurious_rewards import inverted_outcome

LEFT_OUT = {
    **dict.fromkeys(
        ("half_moment_pos", "half_moment_neg", "clip_bias"), "compared in the expected loss"
    ),
    **dict.fromkeys(
        ("entropy_drift", "raw_magnitude", "clip_magnitude", "delta_draw", "delta_mean"),
        "an analysis of the paper",
    ),
    "delta_var": "an analysis of the paper",
    "unclipped_token_loss": "0 in exact arithmetic",
}


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    settings = {"chance": hyper["gamma"], "epsilon": hyper["eps"]}
    own = recipe(
        "spurious_rewards", clip_low=hyper["clip"], clip_high=hyper["clip"], **settings
    ).objective
    logits, stats = golden.inputs(case)["logits"], golden.stats(case)
    loss, slope, token_loss = 0.0, 0.0, 0.0
    # Groups do not read each other, so all may have equal rewards.
    for paid in itertools.product((0.0, 1.0), repeat=size):
        reward = np.tile(np.array(paid), len(batch.reward) // size)
        done = golden.step(own, stats, batch.replace(reward=reward))
        number = int(sum(paid))
        weight = hyper["gamma"] ** number * (1 - hyper["gamma"]) ** (size - number)
        loss = loss + weight * done.loss
        slope = slope + weight * done.dstats.logp
        token_loss = token_loss + weight * done.token_loss
    ratio = done.signals.ratio
    _, pull_back = jax.vjp(lambda logits: golden.token_stats(logits, batch.tokens).logp, logits)

    def reward_of(control):
        return golden.prepared(recipe("spurious_rewards", control=control), batch).reward

    return {
        "loss": loss,
        "dlogits": pull_back(slope)[0],
        "token_loss": on_mask(token_loss, batch),
        "ratio": on_mask(ratio, batch),
        "clipped_high": batch.mask & (ratio > 1 + hyper["clip"]),
        "clipped_low": batch.mask & (ratio < 1 - hyper["clip"]),
        "reward_incorrect": reward_of(inverted_outcome),
        "reward_format": reward_of(column(1)),
    }
