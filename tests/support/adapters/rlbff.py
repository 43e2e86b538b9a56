"""RLBFF's vectors: the judge's verdict is read at the last token of the row."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import only, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.judges.rl_v import verdict_loss

LEFT_OUT = {
    name: "of the judge, whose verdicts the method takes" for name in ("p_yes", "predicted", "nll")
}


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    # All rows are finished: the verdict stands in them.
    batch = batch.replace(truncated=jnp.zeros_like(batch.truncated))
    last = np.maximum(golden.token_after(data["mask"]) - 1, 0)
    verdict = ([hyper["yes_id"], hyper["no_id"]], last)
    stats_of = functools.partial(golden.token_stats, tokens=batch.tokens, verdict=verdict)
    told = stats_of(jnp.asarray(data["logits"])).records["verdict_logp"]
    odds = told[:, 0] - told[:, 1]
    done = golden.evaluate(only(verdict_loss(1.0)), case, stats_of=stats_of, batch=batch)
    method = recipe("rlbff", epsilon=hyper["eps"])
    paid = golden.prepared(method, batch.replace(component_rewards=odds[:, None]))
    return {
        **done.outputs(),
        "reward": paid.reward,
        "advantages": row_advantages(method, paid),
    }
