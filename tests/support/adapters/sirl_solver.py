"""The vectors of SIRL's partial KL: tokens of the code, their rewards, and the whitened returns.

The form `code_only` is that of the released code, in which only the code is in the loss.
"""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.methods.rewards.sirl_solver import code_tokens, partial_kl_return
from rlvr_jax.objectives import clipped_objective, k1, k3_clamped, token_rewards, whitened
from rlvr_jax.types import Recipe


def outputs(case, hyper):
    batch = golden.rollouts(case)
    # The code is the second turn; a row without one is all code.
    second = batch.mask & (batch.records["turn"] == 1)
    start = jnp.where(second.any(axis=1), jnp.argmax(second, axis=1), 0).astype(jnp.int32)
    batch = batch.replace(code_start=start)
    code = code_tokens(batch, batch.mask)
    found = {"code_start": start, "code_mask": code}
    for name, divergence in (("k1", k1), ("k3", k3_clamped)):
        own = divergence(batch.old_logp, batch.reference_logp, batch.old_logp)
        price = jnp.where(code, own, 0)
        estimator = whitened(
            partial_kl_return(hyper["beta"], divergence),
            ddof=1,
            epsilon=hyper["var_eps"],
            floor=0.0,
        )
        recipe = Recipe(clipped_objective(advantage=estimator))

        def advantages(batch, recipe=recipe):
            return golden.evaluate(recipe, case, batch=batch).signals.advantage

        found |= {
            f"token_rewards_{name}": token_rewards(batch.reward, batch.mask, price, hyper["beta"]),
            f"advantages_{name}": advantages(batch),
            f"advantages_code_only_{name}": advantages(batch.replace(mask=code)),
        }
    return found
