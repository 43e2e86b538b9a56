"""SIREN's vectors; the anchor is measured on the reference policy."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask, only

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.siren import AnchorState, anchored_entropy, peak_entropy


@both
def outputs(case, hyper, soft):
    data, batch = golden.inputs(case), golden.rollouts(case, soft)
    nucleus = {"top_p": hyper["top_p"], "include_crossing": hyper["include_crossing"]}
    stats_of = functools.partial(golden.token_stats, tokens=batch.tokens, **nucleus)

    def entropy_of(name, **changed):
        return stats_of(jnp.asarray(data[name]), **changed).records["nucleus_entropy"]

    mean, peaks = peak_entropy(entropy_of("logits"), batch, hyper["quantile"])
    anchor, _ = peak_entropy(entropy_of("ref_logits"), batch, hyper["quantile"])
    state = {"anchored_entropy": AnchorState(anchor, jnp.asarray(1, jnp.int32))}
    made = nucleus | {
        "quantile": hyper["quantile"],
        "clip_low": hyper["clip"],
        "clip_high": hyper["clip"],
        "dual_clip": hyper["dual"],
        "max_length": batch.mask.shape[1],
    }
    done = golden.evaluate(
        recipe("siren", coefficient=hyper["coef"], **made), case, soft, state=state
    )
    plain = golden.evaluate(recipe("siren", coefficient=0.0, **made), case, soft, state=state)
    anchored = golden.evaluate(
        only(anchored_entropy(1.0, hyper["quantile"], **nucleus)), case, soft, state=state
    )
    kept = golden.nucleus(jnp.asarray(data["logits"]), **nucleus)
    return {
        **done.outputs(),
        "pg_loss": plain.loss,
        "nucleus_size": on_mask(jnp.sum(kept, axis=-1), batch),
        "nucleus_entropy": on_mask(entropy_of("logits"), batch),
        "nucleus_entropy_usual": on_mask(entropy_of("logits", include_crossing=True), batch),
        "peak_mask": peaks,
        "masked_entropy": mean,
        "anchor": anchor,
        "reg": anchored.loss,
        "dlogits_reg": anchored.dlogits,
    }
