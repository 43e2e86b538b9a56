"""SofT-GRPO's vectors: turn 0 is thinking in soft tokens, drawn from the old policy."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.surrogates.soft_tokens import (
    GumbelNoise,
    mixture_weights,
    nucleus_candidates,
    perturbed,
    soft_token_logp,
)


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    bounds = GumbelNoise(hyper["lo"], hyper["hi"], hyper["floor"], hyper["eps"])
    ids, p = nucleus_candidates(jnp.asarray(data["old_logits"]), hyper["k"], hyper["top_p"])
    draws = np.random.default_rng(0).gumbel(size=ids.shape)
    noisy = perturbed(p, jnp.asarray(draws), bounds)
    weights = mixture_weights(noisy, hyper["tau"])
    thinking = batch.mask & (batch.records["turn"] == 0)

    def stats_of(logits):
        return golden.token_stats(logits, batch.tokens, candidates=ids)

    def soft_logp(stats):
        own = soft_token_logp(stats.records["candidate_logp"], noisy, bounds)
        return jnp.where(thinking, own, stats.logp)

    old_logp = on_mask(soft_logp(stats_of(jnp.asarray(data["old_logits"]))), batch)
    batch = batch.replace(
        old_candidate_logp=stats_of(jnp.asarray(data["old_logits"])).records["candidate_logp"],
        soft=thinking,
        candidate_ids=ids,
        candidate_noisy_logp=noisy,
    )
    own = recipe(
        "soft_grpo",
        clip_low=hyper["clip"],
        clip_high=hyper["clip"],
        kl_coefficient=0.0,
        noise_low=bounds.low,
        noise_high=bounds.high,
        floor=bounds.floor,
        noise_epsilon=bounds.epsilon,
    )
    done = golden.evaluate(own, case, stats_of=stats_of, batch=batch)
    return {
        **done.outputs(),
        "ids": ids,
        "noise": jnp.clip(draws, bounds.low, bounds.high),
        "gumbels": noisy,
        "weights": weights,
        "order": jax.numpy.argsort(-weights, axis=-1),
        "thinking": thinking,
        "logp": on_mask(soft_logp(stats_of(jnp.asarray(data["logits"]))), batch),
        "old_logp": old_logp,
        "ratio": on_mask(done.signals.ratio, batch),
        "advantages": row_advantages(own, batch),
    }
