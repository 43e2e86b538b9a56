"""Lp-Reg's vectors."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.methods.entropy.lp_reg import low_probability_candidates, min_p_proxy

LEFT_OUT = {f"n_candidates{kind}": "their number" for kind in ("", "_soft")}


@both
def outputs(case, hyper, soft):
    batch = golden.rollouts(case, soft, min_p=hyper["min_p"])
    lp_reg = recipe_with(hyper, "lp_reg", fraction=hyper["share"], coefficient=hyper["coef"])
    done = golden.evaluate(lp_reg, case, soft, batch=batch)
    proxy = min_p_proxy(
        batch.old_logp,
        batch.records["old_max_logp"],
        batch.records["old_min_p_mass"],
        hyper["min_p"],
    )
    candidates = low_probability_candidates(
        done.signals.advantage,
        golden.stats(case).logp,
        batch.mask,
        hyper["share"],
        batch.rollout_id,
    )
    return {
        **done.outputs(),
        "candidates": candidates,
        "selected": on_mask(jnp.isinf(done.signals.clip_low), batch),
        "proxy_alive": on_mask(jnp.isfinite(proxy), batch),
        "proxy_prob": on_mask(jnp.exp(proxy), batch),
    }
