"""Lp-Reg's vectors."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.lp_reg import low_probability_candidates, min_p_proxy

LEFT_OUT = {f"n_candidates{kind}": "their number" for kind in ("", "_soft")}


@both
def outputs(case, hyper, soft):
    batch = golden.rollouts(case, soft, min_p=hyper["min_p"])
    lp_reg = recipe(
        "lp_reg",
        fraction=hyper["share"],
        min_p=hyper["min_p"],
        coefficient=hyper["coef"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        epsilon=hyper["eps"],
    )
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
        "advantages": done.signals.advantage,
        "candidates": candidates,
        "selected": on_mask(jnp.isinf(done.signals.clip_low), batch),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "proxy_alive": on_mask(jnp.isfinite(proxy), batch),
        "proxy_prob": on_mask(jnp.exp(proxy), batch),
    }
