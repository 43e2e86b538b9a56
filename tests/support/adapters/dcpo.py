"""DCPO's vectors. The state is the estimate of this batch itself."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.dcpo import (
    EntropyEstimate,
    mixture_weight,
    target_temperature,
    tempered_ratio,
)
from rlvr_jax.objectives.statistics.masked import masked_mean

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    target, hot, cold = hyper["target"], hyper["t_high"], hyper["t_low"]
    method = recipe(
        "dcpo",
        entropy_target=target,
        temperature_high=hot,
        temperature_low=cold,
        outcome_threshold=hyper["threshold"],
        gap_cap=hyper["gap_cap"],
        clip_low=hyper["clip"],
        clip_high=hyper["clip"],
        dual_clip=hyper["dual"],
    )
    batch = golden.rollouts(case, soft, temperatures=(hot, cold))
    entropy = -masked_mean(batch.old_logp, batch.mask)
    state = {"mix_in_tempered_policy": EntropyEstimate(entropy)}
    done = golden.evaluate(method, case, soft, state=state, batch=batch)
    good = batch.outcome > hyper["threshold"]
    high, low = (
        tempered_ratio(batch.old_tempered_logp[..., i], batch.old_logp, batch.mask) for i in (0, 1)
    )
    return {
        "entropy_estimate": done.state["mix_in_tempered_policy"].entropy,
        "temperature": target_temperature(entropy, target, hot, cold),
        "target_ratio": target_temperature(entropy, target, high, low),
        "target_ratio_high": high,
        "target_ratio_low": low,
        "alpha": done.metrics["mixture_weight"],
        "alpha_uncapped": mixture_weight(entropy, target, good, good | True, float("inf")),
        "good": good,
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
