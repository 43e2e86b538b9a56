"""RAST's vectors: the old policy is the large model, teacher and reference the small ones."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import all_logp, on_mask

from rlvr_jax.rollout.combined import combine_logits


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    names = ("old_logits", "teacher_logits", "ref_logits")
    combined = combine_logits(*(jnp.asarray(data[name]) for name in names), hyper["lam"])
    logp = np.asarray(jax.nn.log_softmax(combined))
    base, p = all_logp(case, "old_logits"), np.exp(logp)
    own = np.take_along_axis(logp, data["tokens"][..., None], axis=-1)[..., 0]
    return {
        "log_probs": np.where(data["mask"][..., None], logp, 0),
        "logp": on_mask(own, batch),
        "entropy": on_mask(-(p * logp).sum(axis=-1), batch),
        "kl_to_base": on_mask((p * (logp - base)).sum(axis=-1), batch),
        "top_changed": on_mask(logp.argmax(axis=-1) != base.argmax(axis=-1), batch),
    }
