"""The vectors of noisy-reward correction."""

import golden_vectors as golden
from adapters.common import per_rollout

from rlvr_jax.experience import experience, plain_outcome, shape
from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.rloo import leave_one_out
from rlvr_jax.methods.credit.noisy_reward_correction import forward_corrected
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, rollout_mean_token_mean
from rlvr_jax.types import Recipe

BACKWARD = "the backward correction is RLOO with another scale, and no part of the recipe"
SECOND = "the second verifier is no part of the recipe"
AUDIT = "a comparison of two advantages, which are compared themselves"
LEFT_OUT = {
    "reward_backward": BACKWARD,
    "coefficient_backward": BACKWARD,
    "loss_backward": BACKWARD,
    "dlogits_backward": BACKWARD,
    "zscore_backward": BACKWARD,
    "flipped": SECOND,
    "rho1_estimate": SECOND,
    "rho1_ema": SECOND,
    "audit_mean": AUDIT,
    "audit_max": AUDIT,
    "audit_cosine": AUDIT,
}


def outputs(case, hyper):
    rho1, clip = hyper["rho1"], hyper["clip"]

    def with_reward(advantage, reward):
        own = objective(
            advantage, surrogate=ppo_clip(clip, clip), aggregation=rollout_mean_token_mean()
        )
        return Recipe(own, experience(stages=[shape(reward)]))

    rewards = {"noisy": plain_outcome, "forward": forward_corrected(rho1)}
    forms = {
        "noisy": with_reward(leave_one_out(), plain_outcome),
        "forward": recipe("noisy_reward_correction", miss_rate=rho1, clip_low=clip, clip_high=clip),
    }
    batch = golden.rollouts(case)
    found = {}
    for name, form in forms.items():
        done = golden.evaluate(form, case)
        scored = golden.evaluate(with_reward(group_normalized(), rewards[name]), case)
        found |= {
            **done.outputs(f"_{name}"),
            f"coefficient_{name}": per_rollout(done.signals.advantage, batch),
            f"zscore_{name}": per_rollout(scored.signals.advantage, batch),
        }
    return found
