"""ACE's vectors; `_relu` has max(c, 0) in place of softplus(c)."""

import golden_vectors as golden
import jax
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.ace import confidence_shift, confident_error_factor
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Recipe

LEFT_OUT = {}


def outputs(case, hyper):
    plain = Recipe(
        objective(group_normalized(hyper["eps"]), surrogate=reinforce(), aggregation=token_mean())
    )
    before = golden.evaluate(plain, case)
    batch = before.batch
    shift = confidence_shift(golden.stats(case).logp, batch.reference_logp, batch.mask)
    found = {"confidence_shift": shift}
    for suffix, gate in (("", jax.nn.softplus), ("_relu", jax.nn.relu)):
        method = recipe(
            "ace",
            strength=hyper["alpha"],
            gate=gate,
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
            epsilon=hyper["eps"],
        )
        done = golden.evaluate(method, case)
        factor = confident_error_factor(before.signals.advantage, shift, hyper["alpha"], gate)
        found |= {
            f"factor{suffix}": per_rollout(factor, batch, empty=1),
            f"advantages{suffix}": done.signals.advantage,
            f"token_loss{suffix}": done.token_loss,
            f"loss{suffix}": done.loss,
            f"dlogits{suffix}": done.dlogits,
        }
    return found
