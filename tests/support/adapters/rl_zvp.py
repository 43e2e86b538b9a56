"""RL-ZVP's vectors."""

import golden_vectors as golden

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.groups import group_all_equal
from rlvr_jax.objectives.statistics.scopes import scoped_max, within_response

LEFT_OUT = {}


def outputs(case, hyper):
    method = recipe(
        "rl_zvp",
        entropy_scale=hyper["alpha"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
    )
    done = golden.evaluate(method, case)
    batch = done.batch
    equal = group_all_equal(batch.reward, batch.group)
    return {
        "entropy": batch.entropy,
        "entropy_max": scoped_max(batch.entropy, batch.mask, within_response(batch))[:, 0],
        "all_right": equal & (batch.reward > 0.5),
        "all_wrong": equal & (batch.reward <= 0.5),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
