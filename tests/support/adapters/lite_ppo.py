"""Lite PPO's vectors; `_centred` scales by the deviation of the centred rewards."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import batch_std, group_mean, objective, ppo_clip, relative_to, token_mean
from rlvr_jax.types import Recipe


def centered_std(reward, group, where=None):
    return batch_std(reward - group_mean(reward, group), group, where)


@both
def outputs(case, hyper, soft):
    clip, epsilon = hyper["clip"], hyper["eps"]
    lite_ppo = recipe("lite_ppo", clip_low=clip, clip_high=clip, epsilon=epsilon)
    done = golden.evaluate(lite_ppo, case, soft)
    batch = done.batch
    other = objective(
        relative_to(group_mean, scale=centered_std, epsilon=epsilon),
        surrogate=ppo_clip(clip, clip),
        aggregation=token_mean(),
    )
    return {
        **done.outputs(),
        "batch_std": batch_std(batch.reward, batch.group)[0],
        "batch_std_centred": centered_std(batch.reward, batch.group)[0],
        "advantages_centred": golden.evaluate(Recipe(other), case, soft).signals.advantage,
    }
