"""Guide's vectors: the rows of another policy are those that were drawn with a hint."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, per_group

from rlvr_jax.experience import outside
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.guide import mean_at_most, quantile_scale, shaped_ratio
from rlvr_jax.objectives import (
    by_origin,
    group_mean,
    group_normalized,
    objective,
    ppo_clip,
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.algebra.parts import Context
from rlvr_jax.types import Recipe, replace

BATCH = "one γ for all hinted tokens, which the method does not have"
LEFT_OUT = {"gamma_batch": BATCH, "loss_batch": BATCH, "dlogits_batch": BATCH}


def outputs(case, hyper):
    trust = {"clip_low": hyper["clip"], "clip_high": hyper["clip"], "epsilon": hyper["std_eps"]}
    shaping = {"quantile": hyper["quantile"], "least_scale": hyper["gamma_min"]}
    method = recipe("guide", low=hyper["low"], high=hyper["high"], **trust, **shaping)
    done = golden.evaluate(method, case)
    batch = done.batch
    scale = quantile_scale(hyper["quantile"], hyper["gamma_min"])

    logp = golden.stats(case).logp
    context = Context(golden.stats(case), batch, batch.old_logp, None)
    gamma = scale(jnp.exp(logp - batch.old_logp), context)
    # The code's quantile is over all places of a row, whatever they hold.
    full = batch.replace(mask=jnp.ones_like(batch.mask))
    everywhere = jnp.asarray(ratio_everywhere(case))
    padded = scale(everywhere, replace(context, rollouts=full))
    own = ppo_clip(hyper["clip"], hyper["clip"])
    made = objective(
        group_normalized(hyper["std_eps"]),
        surrogate=by_origin(own, shaped_ratio(lambda ratio, context: padded)),
        aggregation=rollout_mean_token_mean(),
    )
    of_padded = golden.evaluate(Recipe(made), case)
    foreign = np.asarray(batch.records["off_policy"])

    def of_rows(values):
        return np.where(foreign, np.broadcast_to(values, (len(foreign), 1))[:, 0], 0)

    outcomes = golden.experience_batch(batch).outcomes()
    return {
        **done.outputs(),
        **of_padded.outputs("_padded"),
        "group_accuracy": per_group(group_mean(batch.outcome, batch.group), case),
        "need_guidance": mean_at_most(hyper["low"])(outcomes),
        "trainable": ~outside(hyper["low"], hyper["high"])(outcomes),
        "gamma": of_rows(gamma),
        "gamma_padded": of_rows(padded),
        "shaped": np.where(foreign[:, None], on_mask(done.signals.ratio, batch), 0),
    }


def ratio_everywhere(case):
    """The ratio at every place, off the mask as well."""
    data = golden.inputs(case)

    def logp(name):
        every = data[name] - np.log(np.exp(data[name]).sum(axis=-1, keepdims=True))
        return np.take_along_axis(every, data["tokens"][..., None], axis=-1)[..., 0]

    return np.exp(logp("logits") - logp("old_logits"))
