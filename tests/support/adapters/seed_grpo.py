"""SEED-GRPO's vectors."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.seed_grpo import (
    exponential_decay,
    focal_decay,
    hyperbolic_decay,
    linear_decay,
    relative_semantic_entropy,
)
from rlvr_jax.objectives import masked_mean, semantic_entropy


@both
def outputs(case, hyper, soft):
    bounds = {"clip_low": hyper["clip"], "clip_high": hyper["clip"]}
    rate = hyper["alpha_shape"]
    linear = recipe("seed_grpo", entropy_rate=rate, decay=linear_decay, **bounds)
    done = golden.evaluate(recipe("seed_grpo", entropy_rate=hyper["alpha"], **bounds), case, soft)
    batch = done.batch
    loglik = masked_mean(batch.old_logp, batch.mask, axis=1)
    fraction = relative_semantic_entropy(loglik, batch.records["answer"], batch.group)
    return {
        **done.outputs(),
        "loglik_mean": loglik,
        "semantic_entropy": semantic_entropy(loglik, batch.records["answer"], batch.group),
        "semantic_entropy_count": semantic_entropy(
            jnp.zeros_like(loglik), batch.records["answer"], batch.group
        ),
        "scale": hyperbolic_decay(fraction, hyper["alpha"]),
        "scale_linear": linear_decay(fraction, rate),
        "scale_exp": exponential_decay(fraction, rate),
        "scale_focal": focal_decay(fraction, rate),
        "advantages_linear": golden.signals(linear, case, soft).advantage,
    }
