"""PreRL's vectors: the logits are those without the prompt."""

import golden_vectors as golden
from adapters.common import on_mask, recipe_with, row_advantages

from rlvr_jax.methods.off_policy.prerl import (
    keep_negative_rollouts,
    under_second_prompt,
)
from rlvr_jax.objectives import group_centered, group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Recipe

SWITCH = "of the switch to GRPO, which the method leaves to a second run"
LEFT_OUT = {
    "loss_psr": "of positive rollouts, which the method does not train",
    "weight_pre": SWITCH,
    "weight_rl": SWITCH,
}


def outputs(case, hyper):
    clip = ppo_clip(hyper["clip"], hyper["clip"], dual=hyper["clip_c"])
    batch = golden.rollouts(case)

    def stats_of(logits):
        return golden.token_stats(logits, batch.tokens, second_prompt=logits)

    def made(*kept, advantage=None, surrogate=None):
        own = objective(
            advantage or group_centered(),
            kept,
            surrogate=surrogate or under_second_prompt(clip),
            aggregation=token_mean(),
        )
        return golden.evaluate(Recipe(own), case, stats_of=stats_of)

    method = recipe_with(hyper, "prerl", coefficient=hyper["coef"], dual_clip=hyper["clip_c"])
    done = golden.evaluate(method, case, stats_of=stats_of)
    every, negative = made(), made(keep_negative_rollouts())
    plain = Recipe(objective(group_normalized(), surrogate=clip, aggregation=token_mean()))
    return {
        **every.outputs("_pre"),
        **negative.outputs("_nsr"),
        "advantages": row_advantages(method, batch),
        "advantages_rl": row_advantages(plain, batch),
        "mask_nsr": done.signals.mask,
        "token_loss": on_mask(every.token_loss, batch),
        "loss_rl": made(advantage=group_normalized(), surrogate=clip).loss,
        "loss": done.loss,
    }
