"""RLOO's vectors; `_clip` is TRL's reading, which clips the ratio of the whole response."""

import golden_vectors as golden
from adapters.common import both, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.rloo import leave_one_out
from rlvr_jax.methods.clipping.f_dpg import product_ratio
from rlvr_jax.objectives import group_others_mean, objective, ppo_clip, rollout_mean_token_mean
from rlvr_jax.types import Recipe


@both
def outputs(case, hyper, soft):
    done = golden.evaluate(recipe("rloo"), case, soft)
    clipped = golden.evaluate(
        Recipe(
            objective(
                advantage=leave_one_out(),
                surrogate=ppo_clip(hyper["clip"], hyper["clip"], ratio=product_ratio),
                aggregation=rollout_mean_token_mean(),
            )
        ),
        case,
        soft,
    )
    return {
        **done.outputs(),
        **clipped.outputs("_clip"),
        "baseline": group_others_mean(done.batch.reward, done.batch.group),
        "seq_ratio": per_rollout(clipped.signals.ratio, done.batch, empty=1),
        "seq_loss_clip": per_rollout(clipped.token_loss, done.batch),
    }
