"""OBLR-PO's vectors: norms of the last matrix's score, and the proxy in logit space."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.oblr_po import (
    logit_score_norm,
    score_weighted_mean,
)
from rlvr_jax.objectives import Context, group_mean

RATE = "the learning rate is set by the run"
LEFT_OUT = {
    "score_norm2": "given to the recipe, see `last_layer_norms`",
    "snr": RATE,
    "lr": RATE,
}


def outputs(case, hyper):
    batch, epsilon, norm = golden.rollouts(case), hyper["eps"], last_layer_norms(case)
    done = golden.evaluate(recipe("oblr_po", norm=lambda context: norm, epsilon=epsilon), case)
    proxy = logit_score_norm(Context(golden.stats(case), batch, batch.old_logp, None))
    reward, group = batch.reward, batch.group
    _, first = np.unique(group, return_index=True)
    baseline = score_weighted_mean(reward, norm, group, epsilon)
    advantage = reward - baseline

    def second_moment(centered):
        return group_mean(norm * centered**2, group)[first]

    return {
        **done.outputs(),
        "baseline": baseline[first],
        "advantages": advantage,
        "second_moment_opt": second_moment(advantage),
        "second_moment_mean": second_moment(reward - group_mean(reward, group)),
        "proxy_norm2": proxy,
        "baseline_proxy": score_weighted_mean(reward, proxy, group, epsilon)[first],
    }


def last_layer_norms(case):
    """Squared norms of Σ_t (e_{y_t} - p_t) h_tᵀ, the scores with respect to the last matrix."""
    data = golden.inputs(case)
    p = np.exp(data["logits"]) / np.exp(data["logits"]).sum(axis=-1, keepdims=True)
    errors = np.where(data["mask"][..., None], np.eye(p.shape[-1])[data["tokens"]] - p, 0)
    scores = np.einsum("btv,btd->bvd", errors, np.nan_to_num(data["hidden"]))
    return jnp.asarray(np.sum(scores**2, axis=(1, 2)))
