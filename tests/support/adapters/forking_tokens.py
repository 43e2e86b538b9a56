"""The vectors of forking tokens: TRL's reading, and the choices of two others."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.forking_tokens import drop_weightless
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.masked import masked_count, share_of
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.weights import keep_top_entropy
from rlvr_jax.types import Recipe

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    fraction, bounds = hyper["rho"], {"low": hyper["clip_low"], "high": hyper["clip_high"]}
    method = recipe(
        "forking_tokens",
        fraction=fraction,
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
    )
    done = golden.evaluate(method, case, soft)
    over_kept = Recipe(
        objective(
            advantage=group_normalized(hyper["eps"]),
            transforms=[keep_top_entropy(fraction), drop_weightless()],
            surrogate=ppo_clip(**bounds),
            aggregation=token_mean(),
        )
    )
    batch, entropy = done.batch, golden.stats(case).entropy
    k = jnp.maximum(share_of(fraction, masked_count(batch.mask)), 1)
    sets = within_response(batch)
    return {
        "entropy": on_mask(entropy, batch),
        "threshold": done.metrics["entropy_threshold"],
        "keep": batch.mask & (done.signals.weight == 1),
        "keep_topk": masked_top_k(entropy, batch.mask, k, batch.rollout_id),
        "keep_per_response": above_quantile(entropy, batch.mask, sets, 1 - fraction),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "loss_over_kept": golden.evaluate(over_kept, case, soft).loss,
        "dlogits": done.dlogits,
    }
