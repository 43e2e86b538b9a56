"""RAPID's vectors."""

import golden_vectors as golden
from adapters.common import on_mask, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.off_policy.rapid import capped_rollout_weight

LEFT_OUT = {
    "value": "the reward less the advantage, which is compared",
    "value_self_normalised": "another baseline, which the method does not have",
}


def outputs(case, hyper):
    done = golden.evaluate(recipe("rapid", cap=hyper["eta"]), case)
    tokens = golden.evaluate(recipe("rapid", cap=hyper["eta"], per_token=True), case)
    batch, logp = done.batch, golden.stats(case).logp
    weight = capped_rollout_weight(logp, batch.old_logp, batch.mask, hyper["eta"])
    return {
        **done.outputs(),
        **tokens.outputs("_token"),
        "weights": weight,
        "advantages": per_rollout(done.signals.advantage, batch),
        "token_weights": on_mask(tokens.signals.weight, batch),
    }
