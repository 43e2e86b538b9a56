"""Arrays of a pool for records of each token that are made only on request."""

from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.policy import Model
from rlvr_jax.rollout.pool import Pool
from rlvr_jax.rollout.processors import LEAST_TEMPERATURE, Processor, Sampling


def with_records(
    model: Model,
    pool: Pool,
    sampling: Sampling,
    processor: Processor | None,
    temperature: Float[Array, "R"] | float | None = None,
    record_top: int = 0,
) -> Pool:
    """The pool with rows of that temperature, and with arrays for the requested records.

    Tokens that were sampled before there was a record have the temperature of `sampling` in it.

    Args:
      model: the policy.
      pool: rows of a pool, running or finished.
      sampling: settings of the sampler.
      processor: logits processor, whose state is added; None: none.
      temperature: of each row, or of all; None: that of `sampling`.
      record_top: number of most probable tokens to record, per place; 0: none.
    Raises:
      ValueError: record_top is not in the vocabulary, or differs from the one before.
    """
    vocabulary = model.config.vocab_size
    if not 0 <= record_top <= vocabulary:
        raise ValueError(
            f"decode: record_top must be in 0 … {vocabulary}, the vocabulary, got {record_top}"
        )
    dtype, rows = pool.logp.dtype, pool.status.shape
    if temperature is not None:
        # Greedy from there on: smaller divisors overflow.
        least = jnp.maximum(jnp.asarray(temperature, dtype), LEAST_TEMPERATURE)
        temperature = jnp.broadcast_to(least, rows)
        pool = replace(pool, temperature=temperature)
    earlier = jnp.where(pool.mask, jnp.asarray(sampling.temperature, dtype), 0)
    if pool.token_temperature is not None:
        earlier = pool.token_temperature
    elif pool.temperature is not None:
        pool = replace(pool, token_temperature=earlier)
    if sampling.soft is not None and pool.soft is None:
        shape = *pool.tokens.shape, sampling.soft.candidates
        nothing = jnp.zeros(shape, dtype)
        pool = replace(
            pool,
            soft=jnp.zeros(pool.tokens.shape, bool),
            candidate_ids=jnp.zeros(shape, jnp.int32),
            candidate_weight=nothing,
            candidate_noisy_logp=nothing,
        )
    reports = processor is not None and processor.temperature is not None
    if reports and pool.sampled_temperature is None:
        pool = replace(pool, sampled_temperature=earlier)
    if not record_top:
        return pool
    if pool.topk_logp is None:
        shape = *pool.tokens.shape, record_top
        ids = jnp.zeros(shape, jnp.int32)
        return replace(pool, topk_logp=jnp.zeros(shape, dtype), topk_ids=ids)
    if pool.topk_logp.shape[-1] != record_top:
        raise ValueError(
            f"decode: record_top must be {pool.topk_logp.shape[-1]} as in the pool so far, got"
            f" {record_top}"
        )
    return pool
