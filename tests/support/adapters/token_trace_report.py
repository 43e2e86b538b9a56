"""The columns of the token trace; advantages are GRPO's."""

import golden_vectors as golden
from adapters.common import entropy_of, grpo_advantages, logp_of

from rlvr_jax.analysis.arrays import row_mean
from rlvr_jax.analysis.entropy.token_trace_report import (
    clip_fraction,
    rank_and_margin,
    token_trace,
)


def outputs(case, hyper):
    data = golden.inputs(case)
    mask = data["mask"]
    rank, margin = rank_and_margin(data["logits"], data["tokens"])
    trace = token_trace(
        logp=logp_of(case, "logits"),
        old_logp=logp_of(case, "old_logits"),
        ref_logp=logp_of(case, "ref_logits"),
        entropy=entropy_of(case, "logits"),
        rank=rank,
        margin=margin,
        advantage=grpo_advantages(case, hyper["eps"])[:, None],
        mask=mask,
        clip_low=hyper["low"],
        clip_high=hyper["high"],
    )
    return trace._asdict() | {
        "clip_fraction": clip_fraction(trace, mask),
        "mean_entropy": row_mean(trace.entropy, mask),
    }
