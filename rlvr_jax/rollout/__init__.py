"""Rollouts: the sampler in the process of a run, and batches in files.

    rollouts = sample(model, params, Prompts(tokens, length, number, first_sample), key,
                      samples=8, response_tokens=32, sampling=Sampling(), stop_tokens=(2,))

A `Processor` changes the logits: `annealed`, `heated_by_entropy`, `with_deltas`. Branching methods
use a `Pool` with `prefill`, `decode`, `fork`, `fork_into`, `truncate`, `verify`, `probe`, `retire`,
`compact`, `reset`, `resume` and `widen`. A row is `FREE`, `RUNNING`, paused by its `BUDGET`,
`STOPPED` by a text (`find_stops`), `FINISHED` or `PRUNED`. `SoftThinking` feeds mixtures of
embeddings. `save_rollouts` and `load_rollouts` store a batch with its token statistics.
"""

from rlvr_jax.keys import named_key
from rlvr_jax.rollout.combined import Delta, combine_logits, with_deltas
from rlvr_jax.rollout.decode import decode
from rlvr_jax.rollout.feed import prefill, probe, reset, verify
from rlvr_jax.rollout.pool import (
    BUDGET,
    FINISHED,
    FREE,
    PRUNED,
    RUNNING,
    STOPPED,
    Pool,
    compact,
    empty,
    fork,
    fork_into,
    resume,
    retire,
    truncate,
    widen,
)
from rlvr_jax.rollout.processors import (
    Processor,
    Sampling,
    TokenContext,
    compose,
    keep_min_p,
    keep_top_k,
    keep_top_p,
)
from rlvr_jax.rollout.sample import Prompts, row_keys, sample
from rlvr_jax.rollout.sampling_batches import sampling_batches
from rlvr_jax.rollout.soft import SoftThinking
from rlvr_jax.rollout.stops import Stops, find_stops
from rlvr_jax.rollout.storage import load_rollouts, save_rollouts
from rlvr_jax.rollout.temperatures import (
    annealed,
    annealed_temperature,
    entropy_position,
    heated_by_entropy,
)
from rlvr_jax.rollout.to_rollouts import to_rollouts

__all__ = [
    "BUDGET",
    "FINISHED",
    "FREE",
    "PRUNED",
    "RUNNING",
    "STOPPED",
    "Delta",
    "Pool",
    "Processor",
    "Prompts",
    "Sampling",
    "SoftThinking",
    "Stops",
    "TokenContext",
    "annealed",
    "annealed_temperature",
    "combine_logits",
    "compact",
    "compose",
    "decode",
    "empty",
    "entropy_position",
    "find_stops",
    "fork",
    "fork_into",
    "heated_by_entropy",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "load_rollouts",
    "named_key",
    "prefill",
    "probe",
    "reset",
    "resume",
    "retire",
    "row_keys",
    "sample",
    "sampling_batches",
    "save_rollouts",
    "to_rollouts",
    "truncate",
    "verify",
    "widen",
    "with_deltas",
]
