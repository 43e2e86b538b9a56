"""The vectors of rollout correction. The reference policy plays the sampler."""

import golden_vectors as golden
from adapters.common import on_mask, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.asearcher import band_importance
from rlvr_jax.methods.clipping.f_dpg import product_ratio
from rlvr_jax.methods.off_policy.rollout_correction import (
    drop_by_divergence,
    drop_by_ratio,
    drop_drifted_failures,
)
from rlvr_jax.objectives import (
    clip_to_trusted,
    effective_sample_size,
    group_normalized,
    masked_mean,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.objectives.statistics.ratios import sequence_ratio
from rlvr_jax.objectives.surrogates.policy_gradient import weighted_reinforce
from rlvr_jax.objectives.transforms.corrections import sampler_divergence, truncate_importance
from rlvr_jax.types import Recipe

LEFT_OUT = {"w_seq_norm": "normalized by a mean over rollouts, which no public function gives"}


def outputs(case, hyper):
    batch = golden.rollouts(case, soft=True)
    batch = batch.replace(behaviour_logp=batch.reference_logp)
    cap, low, high = hyper["cap"], hyper["low"], hyper["high"]
    geometric = drop_by_ratio(hyper["geo_low"], hyper["geo_high"])

    def evaluate(transforms=(), surrogate=None, batch=batch):
        own = objective(
            advantage=group_normalized(),
            transforms=transforms,
            surrogate=surrogate or ppo_clip(hyper["clip"], hyper["clip"]),
            aggregation=token_mean(),
        )
        return golden.evaluate(Recipe(own), case, batch=batch)

    def method(**changed):
        clips = {"clip_low": hyper["clip"], "clip_high": hyper["clip"]}
        return golden.evaluate(
            recipe("rollout_correction", cap=cap, **clips, **changed), case, batch=batch
        )

    tis, geo_rs = method(), method(rejections=[geometric])
    seq_tis = evaluate([truncate_importance(cap, product_ratio)])
    tis_norm = evaluate([truncate_importance(cap, normalizer=masked_mean)])
    icepop = evaluate([band_importance(low, high)])
    opsm = evaluate([drop_drifted_failures(hyper["opsm_delta"])])
    kept_seq = evaluate([drop_by_ratio(low, high, product_ratio)]).signals.mask
    kept_k3 = evaluate([drop_by_divergence(hyper["k3_max"])]).signals.mask
    bypass = evaluate(
        surrogate=weighted_reinforce(low=1.0, high=cap - 1),
        batch=batch.replace(old_logp=batch.behaviour_logp),
    )
    ratio = sequence_ratio(batch.old_logp, batch.behaviour_logp, batch.mask)
    found = {
        "advantages": tis.signals.advantage,
        "w_token": on_mask(tis.signals.weight, batch),
        "w_seq": on_mask(seq_tis.signals.weight, batch),
        "w_token_norm": on_mask(tis_norm.signals.weight, batch),
        "keep_token": on_mask(icepop.signals.weight != 0, batch),
        "w_token_masked": on_mask(icepop.signals.weight, batch),
        "keep_seq": kept_seq,
        "keep_geo": geo_rs.signals.mask,
        "keep_k3": kept_k3,
        "keep_opsm": on_mask(opsm.signals.weight, batch),
        "ess_token": effective_sample_size(tis_norm.signals.weight, batch.mask),
        "geo_ratio": per_rollout(ratio, batch, empty=1),
        "seq_k3": sampler_divergence(batch.old_logp, batch.behaviour_logp, batch.mask),
        "w_bypass": on_mask(clip_to_trusted(bypass.signals), batch),
    }
    losses = {
        "tis": tis,
        "seq_tis": seq_tis,
        "icepop": icepop,
        "geo_rs": geo_rs,
        "opsm": opsm,
        "bypass": bypass,
    }
    for name, done in losses.items():
        found |= done.outputs(f"_{name}")
    return found
