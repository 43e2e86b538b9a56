"""PAPO's vectors; the teacher's logits stand for the prompt whose evidence is hidden."""

import functools

import golden_vectors as golden
import jax
import jax.numpy as jnp
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.divergences import k3_clamped


def outputs(case, hyper):
    data, sampled = golden.inputs(case), golden.rollouts(case)
    trust = {
        "clip_low": hyper["clip_low"],
        "clip_high": hyper["clip_high"],
        "dual_clip": hyper["dual"],
        "epsilon": hyper["eps"],
    }
    full = trust | {
        "dependence_coefficient": hyper["gamma"],
        "hidden_entropy_coefficient": hyper["eta_masked"],
        "entropy_coefficient": hyper["eta_plain"],
        "kl_coefficient": hyper["kl_ref"],
    }
    stats_of = functools.partial(golden.token_stats, tokens=sampled.tokens)
    hidden = jnp.asarray(data["teacher_logits"])
    stats = stats_of(jnp.asarray(data["logits"]), second_prompt=hidden)
    batch = sampled.replace(old_second_prompt_logp=stats.records["second_prompt_logp"])
    evaluate = functools.partial(
        golden.evaluate,
        case=case,
        batch=batch,
        stats_of=functools.partial(stats_of, second_prompt=hidden),
    )
    alone = dict.fromkeys(full.keys() - trust.keys(), 0.0)
    plain = evaluate(recipe("papo", **trust, **alone))
    done = evaluate(recipe("papo", **full))
    both = recipe("papo", **full, train_hidden=True)
    recomputed = evaluate(both)

    def loss_of_hidden(hidden):
        stats = stats_of(jnp.asarray(data["logits"]), second_prompt=hidden)
        return both.objective.loss(stats, batch, {}, jax.random.key(0))[0]

    dependence = k3_clamped(stats.logp, stats.records["second_prompt_logp"], batch.old_logp)
    return {
        **done.outputs(),
        **recomputed.outputs("_recomputed"),
        "token_pg": plain.token_loss,
        "token_prcp_kl": on_mask(dependence, batch),
        "dmasked_logits_recomputed": jax.grad(loss_of_hidden)(hidden),
    }
