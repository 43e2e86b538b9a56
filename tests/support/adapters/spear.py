"""SPEAR's vectors: one case stands for the queue of means, the kept rows and the replayed batch."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience import Moment, bounded, signed_outcome, total
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.spear import (
    call_bonus,
    falling_cosine,
    over_steps,
    replay_size,
    usual_reward,
)
from rlvr_jax.objectives import fraction_of, group_mean, masked_count, token_covariance
from rlvr_jax.types import Recipe


def method(hyper, choice, length):
    own = recipe(
        "spear",
        max_length=length,
        replay_fraction=hyper["cov_ratio"],
        replay_covariance_low=hyper["cov_low"],
        replay_covariance_high=hyper["cov_high"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        choice=choice,
    )
    return Recipe(own.objective)


def outputs(case, hyper):
    batch = golden.rollouts(case, soft=True)
    step = hyper["step"]
    falls = falling_cosine(hyper["tool_steps"])
    calls = bounded(call_bonus(hyper["tool_bonus"]), high=hyper["tool_cap"])
    shaped = total({"outcome": signed_outcome, "calls": over_steps(calls, falls)})
    moment = Moment(step, jax.random.key(0), None)
    reward = shaped.apply(batch, shaped.init(0), moment)[0]
    mean = np.asarray(group_mean(reward, batch.group))
    group = np.asarray(batch.group)
    usual = usual_reward(mean[np.unique(group, return_index=True)[1]])
    first, again = np.asarray(reward) - mean, np.asarray(reward) - usual
    kept = (first > 0) & (again > 0)
    mask = np.asarray(batch.mask) & kept[:, None]
    weight = 1 - falling_cosine(hyper["replay_steps"])(step)
    replayed = batch.replace(
        mask=jnp.asarray(mask),
        stored=jnp.ones(len(group), bool),
        advantage=jnp.asarray(np.where(mask, again[:, None], 0)),
        weight=jnp.asarray(np.where(mask, weight, 0)),
        decided_mask=jnp.asarray(mask),
    )
    length = mask.shape[1]

    def run(choice):
        return golden.evaluate(method(hyper, choice, length), case, batch=replayed)

    none = run(lambda eligible, *_: jnp.zeros_like(eligible))
    every = run(lambda eligible, *_: eligible)
    eligible = mask & (np.asarray(every.signals.weight) == 0)
    wanted = jnp.maximum(fraction_of(hyper["cov_ratio"], masked_count(replayed.mask)), 1)
    return {
        **none.outputs("_none_silenced"),
        **every.outputs("_all_silenced"),
        "tool_weight": falls(step),
        "replay_weight": weight,
        "total_reward": reward,
        "baseline": usual,
        "first_advantage": first,
        "replay_advantage": again,
        "kept": kept,
        "batch_size": replay_size(int(kept.sum()), hyper["buffer"]),
        "covariance": token_covariance(
            replayed.records["advantage"], golden.stats(case).logp, replayed.mask
        ),
        "eligible": eligible,
        "number_silenced": min(int(wanted), int(eligible.sum())),
    }
