"""Rollouts: the in-process sampler.

`sample` draws groups of responses; `Sampling` says how; `Processor` is the hook into the logits;
`Pool` with `prefill`, `decode`, `fork`, `truncate` is what branching methods are made of.
"""

from rlvr_jax.rollout.pool import Pool, decode, empty, fork, prefill, truncate
from rlvr_jax.rollout.processors import (
    Processor,
    Sampling,
    StepContext,
    compose,
    keep_min_p,
    keep_top_k,
    keep_top_p,
)
from rlvr_jax.rollout.sample import row_keys, sample, to_rollouts

__all__ = [
    "Pool",
    "Processor",
    "Sampling",
    "StepContext",
    "compose",
    "decode",
    "empty",
    "fork",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "prefill",
    "row_keys",
    "sample",
    "to_rollouts",
    "truncate",
]
