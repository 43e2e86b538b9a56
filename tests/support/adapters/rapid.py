"""RAPID's vectors."""

import golden_vectors as golden
from adapters.common import on_mask, per_group, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.off_policy.rapid import (
    capped_rollout_weight,
    reweighted_value,
    self_normalized_value,
)

LEFT_OUT = {}


def outputs(case, hyper):
    done = golden.evaluate(recipe("rapid", cap=hyper["eta"]), case)
    tokens = golden.evaluate(recipe("rapid", cap=hyper["eta"], per_token=True), case)
    batch, logp = done.batch, golden.stats(case).logp
    weight = capped_rollout_weight(logp, batch.old_logp, batch.mask, hyper["eta"])
    given = (batch.reward, weight, batch.group)
    return {
        "weights": weight,
        "value": per_group(reweighted_value(*given), case),
        "value_self_normalised": per_group(self_normalized_value(*given), case),
        "advantages": per_rollout(done.signals.advantage, batch),
        "loss": done.loss,
        "dlogits": done.dlogits,
        "token_weights": on_mask(tokens.signals.weight, batch),
        "loss_token": tokens.loss,
        "dlogits_token": tokens.dlogits,
    }
