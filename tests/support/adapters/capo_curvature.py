"""CAPO's vectors; the vocabulary may be smaller than the k of the top-k."""

import golden_vectors as golden
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.capo_curvature import predicted_step
from rlvr_jax.objectives import fixed_length_mean

LEFT_OUT = {
    "grad_dot": "a term of the predicted change, which is compared",
    "hessian": "a term of the predicted change, which is compared",
}


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    top_k = min(hyper["topk"], data["logits"].shape[-1])

    def stats_of(logits):
        return golden.token_stats(logits, batch.tokens, top_k=top_k).replace(hidden=data["hidden"])

    def method(**changed):
        limits = {"change_limit": hyper["delta_h"], "shift_limit": hyper["delta_f"]} | changed
        own = recipe(
            "capo_curvature",
            **limits,
            learning_rate=hyper["lr"],
            top_k=top_k,
            clip_low=hyper["clip"],
            clip_high=hyper["clip"],
        )
        return golden.evaluate(own, case, stats_of=stats_of)

    done = method()
    every = method(change_limit=float("inf"), shift_limit=float("inf"))
    lifting = method(symmetric=False)
    by_length = method(aggregation=fixed_length_mean(batch.mask.shape[1]))
    stats, advantage = stats_of(data["logits"]), every.signals.advantage
    change, shift = predicted_step(
        advantage,
        stats.records["topk_logp"],
        stats.records["topk_ids"],
        batch.tokens,
        stats.records["hidden"],
        hyper["lr"],
    )
    return {
        **done.outputs(),
        **by_length.outputs("_dr"),
        "advantages": row_advantages(recipe("capo_curvature"), batch),
        "model_hessian": on_mask(change, batch),
        "model_fisher": on_mask(shift, batch),
        "keep_hessian": method(shift_limit=float("inf")).signals.mask,
        "keep_fisher": method(change_limit=float("inf")).signals.mask,
        "keep": done.signals.mask,
        "keep_nonsymmetric": lifting.signals.mask,
        "token_loss": every.token_loss,
    }
