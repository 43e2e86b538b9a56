"""The vectors of GRPO-RoC: half of each group is kept."""

import golden_vectors as golden

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.grpo_roc import missed_rewards

LEFT_OUT = {}


def outputs(case, hyper):
    method = recipe(
        "grpo_roc",
        oversampling=round(1 / hyper["keep_share"]),
        min_incorrect=hyper["min_neg"],
        min_correct=hyper["min_pos"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        dual=hyper["dual"],
        epsilon=hyper["eps"],
    )
    kept = round(hyper["keep_share"] * int(golden.inputs(case)["group_size"]))
    done = golden.evaluate(method, case, samples=kept)
    return {
        "penalty": missed_rewards(golden.experience_batch(golden.rollouts(case)), None),
        "keep": done.batch.mask.any(axis=1),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
