"""SDPO's vectors: the teacher's logits are those of the policy that was shown another answer."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.distillation.sdpo import (
    drop_untaught,
    over_likeliest,
    with_tail,
)
from rlvr_jax.methods.distillation.srpo import over_vocabulary
from rlvr_jax.objectives import (
    clamped_token_ratio,
    distilled,
    has_correct_sibling,
    no_advantage,
    objective,
    token_mean,
)
from rlvr_jax.objectives.algebra.parts import Context
from rlvr_jax.types import Recipe

SAMPLED = "the form with the sampled token, which the method does not have"
LEFT_OUT = {"loss_sampled": SAMPLED, "dlogits_sampled": SAMPLED}


def outputs(case, hyper):
    data = golden.inputs(case)
    k, cap, success = hyper["topk"], hyper["is_clip"], hyper["success"]

    def stats_of(logits):
        return golden.token_stats(logits, data["tokens"], data["teacher_logits"], top_k=k)

    def evaluated(distance):
        made = objective(
            no_advantage(),
            transforms=[drop_untaught(success)],
            surrogate=distilled(distance, cap),
            aggregation=token_mean(),
        )
        return golden.evaluate(Recipe(made), case, stats_of=stats_of)

    method = recipe("sdpo", alpha=hyper["alpha"], top_k=k, ratio_cap=cap, success=success)
    done = golden.evaluate(method, case, stats_of=stats_of)
    batch = golden.rollouts(case)
    stats = stats_of(jnp.asarray(data["logits"]))
    taught = np.asarray(has_correct_sibling(batch, success))
    kept = np.asarray(batch.mask) & taught[:, None]
    ratio = clamped_token_ratio(stats.logp, batch.old_logp, batch.mask)
    tail = jnp.exp(with_tail(stats.records["topk_logp"])[..., :-1]).sum(axis=-1)
    distance = over_likeliest(k, hyper["alpha"])
    values = distance.values(Context(stats, batch, batch.old_logp, None))
    found = {
        **done.outputs(),
        "has_teacher": taught,
        "loss_mask": kept,
        "topk_mass": on_mask(tail, batch),
        "is_weight": on_mask(jnp.minimum(ratio, cap), batch),
        "divergence": np.where(kept, values, 0),
    }
    others = {
        "forward": over_likeliest(k, 0.0),
        "reverse": over_likeliest(k, 1.0),
        "full_vocab": over_vocabulary("js"),
    }
    for name, distance in others.items():
        other = evaluated(distance)
        found |= other.outputs(f"_{name}")
    return found
