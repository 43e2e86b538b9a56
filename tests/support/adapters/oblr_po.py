"""OBLR-PO's vectors: norms of the last matrix's score, and the proxy in logit space."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.oblr_po import (
    last_layer_score,
    logit_score_norm,
    score_weighted_mean,
    signal_to_noise,
    snr_learning_rate,
)
from rlvr_jax.objectives.algebra.parts import Context
from rlvr_jax.objectives.statistics.groups import group_mean

LEFT_OUT = {}


def outputs(case, hyper):
    data, batch, epsilon = golden.inputs(case), golden.rollouts(case), hyper["eps"]
    score = jax.vmap(last_layer_score)(
        *(jnp.asarray(data[name]) for name in ("logits", "hidden", "tokens", "mask"))
    )
    norm = jnp.sum(score**2, axis=(1, 2))
    done = golden.evaluate(recipe("oblr_po", norm=lambda context: norm, epsilon=epsilon), case)
    proxy = logit_score_norm(Context(golden.stats(case), batch, batch.old_logp, None))
    reward, group = batch.reward, batch.group
    _, first = np.unique(group, return_index=True)
    baseline = score_weighted_mean(reward, norm, group, epsilon)
    advantage = reward - baseline
    gradients = advantage[:, None, None] * score
    snr = signal_to_noise(
        jnp.sum(jnp.mean(gradients, axis=0) ** 2),
        jnp.sum(gradients**2),
        reward.shape[0],
        epsilon,
    )

    def second_moment(centered):
        return group_mean(norm * centered**2, group)[first]

    return {
        "score_norm2": norm,
        "baseline": baseline[first],
        "advantages": advantage,
        "second_moment_opt": second_moment(advantage),
        "second_moment_mean": second_moment(reward - group_mean(reward, group)),
        "snr": snr,
        "lr": snr_learning_rate(snr, hyper["lr"]),
        "loss": done.loss,
        "dlogits": done.dlogits,
        "proxy_norm2": proxy,
        "baseline_proxy": score_weighted_mean(reward, proxy, group, epsilon)[first],
    }
