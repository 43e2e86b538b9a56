"""OPD's vectors: the policy gradient, its clipped form and the exact divergence."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, only, recipe_of

from rlvr_jax.methods import recipe
from rlvr_jax.methods.distillation.opd import teacher_log_ratio
from rlvr_jax.objectives import ppo_clip, statistic_penalty

LEFT_OUT = {}


def outputs(case, hyper):
    done = golden.evaluate(recipe("opd"), case)
    clip = ppo_clip(hyper["clip"], hyper["clip"])
    clipped = golden.evaluate(recipe_of(teacher_log_ratio(frozen=True), clip), case)
    data = golden.inputs(case)

    def stats_of(logits):
        return golden.token_stats(logits, np.asarray(data["tokens"]), data["teacher_logits"])

    exact = golden.evaluate(only(statistic_penalty(1.0, "kl")), case, stats_of=stats_of)
    return {
        "token_reward": done.signals.advantage,
        "frozen_advantages": clipped.signals.advantage,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "loss_ppo": clipped.loss,
        "dlogits_ppo": clipped.dlogits,
        "exact_reverse_kl": on_mask(stats_of(jnp.asarray(data["logits"])).kl, done.batch),
        "loss_exact": exact.loss,
        "dlogits_exact": exact.dlogits,
    }
