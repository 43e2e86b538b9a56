"""AEPO's vectors; `dlogits_hardclip` is the gradient under the ordinary clip."""

import golden_vectors as golden
from adapters.common import both, recipe_with

from rlvr_jax.methods.agents.aepo_agentic import entropy_z_score, scale_by_entropy
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Recipe

PROBE = "from mean entropies of turns; the draw has the authors' sums, see aepo_rollout"
LEFT_OUT = {"entropy_root": PROBE, "entropy_tool": PROBE, "n_global": PROBE}


@both
def outputs(case, hyper, soft):
    aepo = recipe_with(hyper, "aepo_agentic", entropy_coefficient=hyper["adv_coef"])
    hard = objective(
        advantage=group_normalized(hyper["eps"]),
        transforms=[scale_by_entropy(hyper["adv_coef"])],
        surrogate=ppo_clip(hyper["clip_low"], hyper["clip_high"], dual=hyper["dual"]),
        aggregation=token_mean(),
    )
    done = golden.evaluate(aepo, case, soft)
    entropy = golden.stats(case).entropy
    return {
        **done.outputs(),
        "entropy_z": entropy_z_score(entropy, done.batch.mask, done.batch),
        "dlogits_hardclip": golden.evaluate(Recipe(hard), case, soft).dlogits,
    }
