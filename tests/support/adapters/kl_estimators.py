"""The vectors of the KL estimators, and of the exact KLs from sums over the vocabulary."""

import functools

import golden_vectors as golden
import jax
import jax.numpy as jnp
from adapters.common import on_mask, only

from rlvr_jax.objectives import absolute, k1, k2, k3, k3_importance, kl_penalty, statistic_penalty

LEFT_OUT = {
    name: "an estimator that no method uses"
    for name in ("k3pp", "dlogp_k3pp", "loss_k3pp", "dlogits_k3pp")
}
ESTIMATORS = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
    "abs": absolute,
    "k3_is": k3_importance,
}
EXACT = {"full": "kl", "forward": "reverse_kl"}


def outputs(case, hyper):
    del hyper
    data, batch, logp = golden.inputs(case), golden.rollouts(case), golden.stats(case).logp
    stats_of = functools.partial(golden.token_stats, tokens=batch.tokens, other=data["ref_logits"])
    found = {}
    for name, estimator in ESTIMATORS.items():
        value, pull_back = jax.vjp(
            lambda logp, of=estimator: of(logp, batch.reference_logp, batch.old_logp), logp
        )
        found[name] = on_mask(value, batch)
        found[f"dlogp_{name}"] = on_mask(pull_back(jnp.ones_like(logp))[0], batch)
        done = golden.evaluate(only(kl_penalty(1.0, estimator)), case)
        found |= done.outputs(f"_{name}")
    for name, statistic in EXACT.items():
        done = golden.evaluate(only(statistic_penalty(1.0, statistic)), case, stats_of=stats_of)
        found |= {
            **done.outputs(f"_{name}"),
            name: done.token_loss,
        }
    return found
