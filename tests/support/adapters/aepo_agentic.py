"""AEPO's vectors; `dlogits_hardclip` is the gradient under the ordinary clip."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.aepo_agentic import entropy_z_score, scale_by_entropy, turn_entropies
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.objectives.branch_budget import num_from_prompt
from rlvr_jax.types import Recipe

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    aepo = recipe(
        "aepo_agentic",
        entropy_coefficient=hyper["adv_coef"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        dual=hyper["dual"],
        epsilon=hyper["eps"],
    )
    hard = objective(
        advantage=group_normalized(hyper["eps"]),
        transforms=[scale_by_entropy(hyper["adv_coef"])],
        surrogate=ppo_clip(hyper["clip_low"], hyper["clip_high"], dual=hyper["dual"]),
        aggregation=token_mean(),
    )
    done = golden.evaluate(aepo, case, soft)
    batch, entropy = done.batch, golden.stats(case).entropy
    size = golden.inputs(case)["logits"].shape[-1]
    root, tool = turn_entropies(entropy, batch.mask, batch.turn, size)
    return {
        "entropy_z": entropy_z_score(entropy, batch.mask, batch),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "dlogits_hardclip": golden.evaluate(Recipe(hard), case, soft).dlogits,
        "entropy_root": root,
        "entropy_tool": tool,
        "n_global": num_from_prompt(root, tool, hyper["n_total"], hyper["beta"]),
    }
