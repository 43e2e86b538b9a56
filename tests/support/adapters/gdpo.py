"""GDPO's vectors; `_token` is the authors' verl form, `_grpo` sums the rewards first."""

import golden_vectors as golden

from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.gdpo import component_advantages, decoupled_normalized, weighted_sum
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.advantages.whitening import whitened
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Recipe, replace

LEFT_OUT = {}


def outputs(case, hyper):
    weights, clip, epsilon = hyper["weights"], hyper["clip"], hyper["eps_trl"]
    batch = golden.rollouts(case)
    per_reward = component_advantages(batch.component_rewards, batch.group, epsilon)
    found = {"per_reward": per_reward, "combined": weighted_sum(per_reward, weights)}
    summed = replace(batch, reward=weighted_sum(batch.component_rewards, weights))

    def with_advantage(advantage):
        return Recipe(
            objective(advantage, surrogate=ppo_clip(clip, clip), aggregation=token_mean())
        )

    own = decoupled_normalized(weights, hyper["eps_verl"], batch_epsilon=None)
    whole = whitened(own, ddof=1, epsilon=1e-8, floor=0.0)
    method = recipe("gdpo", weights=weights, epsilon=epsilon, clip_low=clip, clip_high=clip)
    for suffix, form, rewards in (
        ("", method, batch),
        ("_token", with_advantage(whole), batch),
        ("_grpo", with_advantage(group_normalized(epsilon)), summed),
    ):
        done = golden.evaluate(form, case, batch=rewards)
        found |= {
            f"advantages{suffix}": done.signals.advantage,
            f"token_loss{suffix}": done.token_loss,
            f"loss{suffix}": done.loss,
            f"dlogits{suffix}": done.dlogits,
        }
    return found
