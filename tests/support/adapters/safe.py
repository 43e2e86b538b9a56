"""SAFE's vectors; two summaries of the given values stand for the critics."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.safe import (
    control_kl,
    excess_kl_penalty,
    huber_value_loss,
    initial_kl_control,
    soft_min,
)
from rlvr_jax.objectives.statistics.masked import masked_mean

LEFT_OUT = {
    "pid": "a term of the threshold, which is compared",
    "entropy_factor": "a factor of the penalty, which is compared",
}
COEFFICIENT = 0.1  # of the penalty
LOW_THRESHOLD = 0.02  # of the vectors, so that the penalty acts


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case, soft=True)
    made = {
        "temperature": hyper["alpha"],
        "clip_low": hyper["clip"],
        "clip_high": hyper["clip"],
        "penalty_coefficient": 0.0,
    }
    done = golden.evaluate(
        recipe("safe", entropy_coefficient=hyper["entropy_coef"], **made), case, soft=True
    )
    plain = golden.evaluate(recipe("safe", entropy_coefficient=0.0, **made), case, soft=True)
    stats = golden.stats(case)
    lowest = soft_min(batch.records["critic_values"], hyper["alpha"])
    fitted = huber_value_loss(
        batch.records["values"][:, 0], lowest, batch.reward, hyper["clip_v"], hyper["huber"]
    )
    entropy = masked_mean(stats.entropy, batch.mask)

    def penalty(logits):
        logp = golden.token_stats(logits, batch.tokens).logp
        kl = masked_mean(logp - batch.reference_logp, batch.mask)
        return excess_kl_penalty(kl, entropy, LOW_THRESHOLD, COEFFICIENT, hyper["floor"])

    acting, dpenalty = jax.value_and_grad(penalty)(jnp.asarray(data["logits"]))
    return {
        **done.outputs(),
        "v1": batch.records["critic_values"][:, 0],
        "v2": batch.records["critic_values"][:, 1],
        "soft_min": lowest,
        "advantages": per_rollout(done.signals.advantage, batch),
        "pg_loss": plain.loss,
        "kl": masked_mean(stats.logp - batch.reference_logp, batch.mask),
        "value_loss": jnp.mean(fitted),
        "entropy": entropy,
        "penalty_diff": acting,
        "dpenalty_diff": dpenalty,
        **controller(hyper, batch, stats),
    }


def controller(hyper, batch, stats):
    """A run of the controller on one row after the other, with a made-up reward."""
    rows = np.arange(hyper["steps"]) % batch.mask.shape[0]
    distance = jnp.abs(stats.logp - batch.reference_logp)
    calls = (
        masked_mean(distance, batch.mask, axis=1)[rows],
        masked_mean(stats.entropy, batch.mask, axis=1)[rows],
        0.3 * jnp.tanh(jnp.arange(hyper["steps"]) / 60) + 0.5 + 0.05 * batch.reward[rows],
    )

    def call(state, means):
        kl, entropy, reward = means
        phase, threshold, state = control_kl(state, kl, reward, hyper["base"])
        penalty = excess_kl_penalty(state.kl_short, entropy, threshold, COEFFICIENT, hyper["floor"])
        return state, (phase, threshold, penalty, state.kl_short, state.kl_long)

    _, decided = jax.lax.scan(call, initial_kl_control(), calls)
    inputs = dict(zip(("ctl_kl", "ctl_entropy", "ctl_reward"), calls, strict=True))
    names = ("phase", "threshold", "penalty", "kl_short", "kl_long")
    return {**inputs, **dict(zip(names, decided, strict=True))}
