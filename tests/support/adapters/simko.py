"""SimKO's vectors. Correct and incorrect are always those of the 0/1 rewards."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.simko import uncertain_tokens
from rlvr_jax.objectives import Context, scoped_quantile, within_response

LEFT_OUT = {"is_argmax": "a step on the way to `boosted`"}


@both
def outputs(case, hyper, soft):
    k, quantile = hyper["k"], hyper["tau"]
    method = recipe_with(
        hyper,
        "simko",
        fraction=hyper["alpha"],
        top_k=k,
        quantile=quantile,
        negative_factor=hyper["neg_scale"],
    )
    batch = golden.rollouts(case, soft, top_k=k)
    batch = batch.replace(outcome=golden.rollouts(case).outcome)

    def stats_of(logits):
        largest, _ = jax.lax.top_k(jax.nn.log_softmax(logits), k)  # with its gradient
        return golden.token_stats(logits, batch.tokens, top_k=k).replace(topk_logp=largest)

    done = golden.evaluate(method, case, soft, stats_of=stats_of, batch=batch)
    stats = stats_of(jnp.asarray(golden.inputs(case)["logits"]))
    context = Context(stats, batch, batch.old_logp, None)
    gate = uncertain_tokens(context, batch.mask, quantile)
    plain = recipe("simko", negative_factor=1.0, quantile=quantile, top_k=k)
    before = golden.evaluate(plain, case, soft, stats_of=stats_of, batch=batch).signals.advantage
    sets = within_response(batch)
    return {
        **done.outputs(),
        "entropy": on_mask(stats.entropy, batch),
        "threshold": scoped_quantile(stats.entropy, batch.mask, sets, quantile)[:, 0],
        "gate": gate,
        "ratio": on_mask(done.signals.ratio, batch),
        "topk_ids": jnp.where(batch.mask[..., None], stats.records["topk_ids"], 0),
        "boosted": done.signals.advantage != before,
    }
