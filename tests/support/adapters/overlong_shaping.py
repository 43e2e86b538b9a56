"""The vectors of the soft overlong penalty and of the filter of cut rollouts."""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.experience.rewards.outcomes import (
    overlong_penalty,
    overlong_shaping,
    plain_outcome,
    signed_outcome,
)
from rlvr_jax.methods.agents.supo import drop_truncated
from rlvr_jax.objectives.algebra.parts import Context
from rlvr_jax.types import Signals, TokenStats


def outputs(case, hyper):
    batch = golden.rollouts(case)
    longest = hyper["max_len"] or batch.mask.shape[1]  # 0 stands for the width of the case
    limits = (longest, hyper["cache"], hyper["factor"])
    everything = jnp.ones_like(batch.mask)
    context = Context(TokenStats(), batch, batch.old_logp, None)
    rows, _, _ = drop_truncated().apply(Signals.neutral(everything, jnp.float64), context, ())
    tokens, _, _ = drop_truncated().apply(Signals.neutral(batch.mask, jnp.float64), context, ())
    return {
        "length": batch.length,
        "penalty": overlong_penalty(batch.length, *limits),
        "penalty_beyond": overlong_penalty(batch.length + 2, *limits),
        "shaped": overlong_shaping(*limits, base=plain_outcome)(batch),
        "shaped_pm1": overlong_shaping(*limits, base=signed_outcome)(batch),
        "filter_keep": rows.mask[:, 0],
        "filter_mask": tokens.mask,
    }
