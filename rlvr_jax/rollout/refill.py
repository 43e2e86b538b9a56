"""The sampler's loop over more responses than are drawn at once: one that ends makes room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from rlvr_jax.policy import LayerCache, Model, Params, SharedCache
from rlvr_jax.rollout.decode import keep, one_token, uniforms
from rlvr_jax.rollout.pool import RUNNING, Pool, paused_at_limit
from rlvr_jax.rollout.processors import Sampling

__all__ = ["decode_in_turn"]


def decode_in_turn(
    model: Model,
    params: Params,
    pool: Pool,
    prompts: tuple[LayerCache, ...],
    at_once: int,
    steps: int,
    sampling: Sampling,
    stop_tokens: Sequence[int],
    weight_version: Int[Array, ""] | int = 0,
) -> Pool:
    """Draws at most `steps` tokens for every row of a pool, `at_once` rows at a time.

    A row has its cache while it runs: the prompt's, copied when its turn comes, and a ring of
    `steps` slots, which all rows write at one place whenever they began.

    Args:
      pool: N running rows without caches, N / P of them side by side answer each prompt.
      prompts: caches of the P prompts.
      at_once: below N.
    Returns:
      The pool, without caches or the processor's carry.
    """
    rows, each = pool.tokens.shape[0], pool.tokens.shape[0] // len(prompts[0].keys)
    params = model.unstacked(params)
    processor = sampling.chain()
    fresh = None if processor is None else processor.init(at_once)
    numbers = uniforms(pool, steps)
    prompt_length = pool.prompt_length
    advance = partial(one_token, model, params, sampling, processor, stop_tokens, weight_version)

    def moved_in(caches, turn, enters, step):
        """The caches with the prompts of the rows that enter, and their first slots."""
        places = jnp.argsort(~enters, stable=True)
        start = jnp.where(enters, prompt_length[turn], caches[0].start)
        origin = jnp.where(enters, (step + 1) % steps, caches[0].origin)

        def copy(number, held):
            place = places[number]

            def put(to, source):
                prompt = jax.lax.dynamic_slice_in_dim(source, turn[place] // each, 1)
                return jax.lax.dynamic_update_slice_in_dim(to, prompt, place, axis=0)

            return jax.tree.map(put, held, prompts)

        held = tuple(cache.prompts for cache in caches)
        held = jax.lax.fori_loop(0, jnp.sum(enters), copy, held)
        return tuple(
            SharedCache(prompt, cache.own, start, origin)
            for prompt, cache in zip(held, caches, strict=True)
        )

    def body(carry):
        step, pool, turn, asked = carry
        number = jnp.clip(pool.length - prompt_length, 0, steps - 1)[turn]
        pool = advance(pool, numbers[turn, number], turn)
        ended = pool.status[turn] != RUNNING
        waiting = asked + jnp.cumsum(ended, dtype=jnp.int32) - 1
        enters = ended & (waiting < rows)
        turn = jnp.where(enters, waiting, turn)
        caches = moved_in(pool.caches, turn, enters, step)
        pool = replace(pool, caches=caches, carry=keep(~enters, pool.carry, fresh))
        return step + 1, pool, turn, asked + jnp.sum(enters, dtype=jnp.int32)

    def some_row_runs(carry):
        return jnp.any(carry[1].status == RUNNING)

    turn = jnp.arange(at_once, dtype=jnp.int32)
    held = jax.tree.map(lambda leaf: leaf[turn // each], prompts)
    caches = model.shared_caches(held, prompt_length[turn], steps, jnp.zeros_like(turn))
    pool = replace(paused_at_limit(pool), caches=caches, carry=fresh)
    start = jnp.zeros((), jnp.int32), pool, turn, jnp.asarray(at_once, jnp.int32)
    pool = jax.lax.while_loop(some_row_runs, body, start)[1]
    return replace(pool, caches=(), carry=None)
