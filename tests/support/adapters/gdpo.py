"""GDPO's vectors; `_grpo` sums the rewards first."""

import golden_vectors as golden

from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.gdpo import component_advantages, weighted_sum
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Recipe

LEFT_OUT = {
    name: "the authors' verl form, which is not built"
    for name in ("advantages_token", "token_loss_token", "loss_token", "dlogits_token")
}


def outputs(case, hyper):
    weights, clip, epsilon = hyper["weights"], hyper["clip"], hyper["eps_trl"]
    batch = golden.rollouts(case)
    per_reward = component_advantages(batch.records["component_rewards"], batch.group, epsilon)
    found = {"per_reward": per_reward, "combined": weighted_sum(per_reward, weights)}
    summed = batch.replace(reward=weighted_sum(batch.records["component_rewards"], weights))

    grpo = objective(
        group_normalized(epsilon), surrogate=ppo_clip(clip, clip), aggregation=token_mean()
    )
    method = recipe("gdpo", weights=weights, epsilon=epsilon, clip_low=clip, clip_high=clip)
    for suffix, form, rewards in (("", method, batch), ("_grpo", Recipe(grpo), summed)):
        done = golden.evaluate(form, case, batch=rewards)
        found |= done.outputs(suffix)
    return found
