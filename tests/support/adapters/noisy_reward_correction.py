"""The vectors of noisy-reward correction; appealed are the negatives on even rows."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import per_rollout

from rlvr_jax.experience import experience, shape
from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.rloo import leave_one_out
from rlvr_jax.methods.credit.noisy_reward_correction import (
    advantage_audit,
    backward_corrected,
    forward_corrected,
    updated_miss_rate,
)
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.shaping import plain_outcome
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Recipe

LEFT_OUT = {}


def outputs(case, hyper):
    rho0, rho1, clip = hyper["rho0"], hyper["rho1"], hyper["clip"]

    def with_reward(advantage, reward):
        own = objective(
            advantage, surrogate=ppo_clip(clip, clip), aggregation=rollout_mean_token_mean()
        )
        return Recipe(own, experience(stages=[shape(reward)]))

    rewards = {
        "noisy": plain_outcome,
        "backward": backward_corrected(rho0, rho1),
        "forward": forward_corrected(rho1),
    }
    forms = {
        "noisy": with_reward(leave_one_out(), rewards["noisy"]),
        "backward": with_reward(leave_one_out(), rewards["backward"]),
        "forward": recipe("noisy_reward_correction", miss_rate=rho1, clip_low=clip, clip_high=clip),
    }
    done = {name: golden.evaluate(form, case) for name, form in forms.items()}
    batch = golden.rollouts(case)
    found = {"reward_backward": done["backward"].batch.reward}
    for name, one in done.items():
        scored = golden.evaluate(with_reward(group_normalized(), rewards[name]), case)
        found |= {
            f"coefficient_{name}": per_rollout(one.signals.advantage, batch),
            f"loss_{name}": one.loss,
            f"dlogits_{name}": one.dlogits,
            f"zscore_{name}": per_rollout(scored.signals.advantage, batch),
        }
    appealed = (batch.reward == 0) & (jnp.arange(batch.reward.shape[0]) % 2 == 0)
    flipped = jnp.sum(appealed & (batch.component_rewards[:, 1] == 1), dtype=float)
    counts = (rho1, flipped, jnp.sum(batch.reward), hyper["q"], hyper["prior"])
    advantages = (done["forward"].signals.advantage, done["noisy"].signals.advantage)
    mean, largest, cosine = advantage_audit(*advantages, batch.mask)
    return {
        **found,
        "flipped": flipped,
        "rho1_estimate": updated_miss_rate(*counts, decay=0.0),
        "rho1_ema": updated_miss_rate(*counts, decay=hyper["ema"]),
        "audit_mean": mean,
        "audit_max": largest,
        "audit_cosine": cosine,
    }
