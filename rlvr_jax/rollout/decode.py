"""Drawing tokens: the loop of the sampler, and the draw from a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.policy import Model, Params
from rlvr_jax.rollout.pool import BUDGET, FINISHED, RUNNING, Pool, paused_at_limit
from rlvr_jax.rollout.processors import Processor, Sampling, StepContext

__all__ = ["decode", "keep", "one_token", "uniforms"]

_TILE = 512  # tokens of the vocabulary that one uniform number chooses among


def decode(
    model: Model,
    params: Params,
    pool: Pool,
    steps: int,
    sampling: Sampling,
    stop_tokens: Sequence[int],
    weight_version: Int[Array, ""] | int = 0,
) -> Pool:
    """Draws at most `steps` tokens for every running row; ends early when no row runs.

    A row that its limit had paused runs again if the limit was raised.

    Args:
      stop_tokens: ids that finish a row; the stop token is part of the response.
      weight_version: recorded with every token.
    """
    processor = sampling.chain()
    if processor is not None:
        begun = processor.init(pool.tokens.shape[0])
        carry = begun if pool.carry is None else keep(pool.fresh, begun, pool.carry)
        pool = replace(pool, carry=carry, fresh=jnp.zeros_like(pool.fresh))
    params = model.unstacked(params)
    numbers = uniforms(pool, steps)
    advance = partial(one_token, model, params, sampling, processor, stop_tokens, weight_version)

    def body(carry):
        step, pool = carry
        return step + 1, advance(pool, numbers[:, step])

    def some_row_runs(carry):
        step, pool = carry
        return (step < steps) & jnp.any(pool.status == RUNNING)

    start = jnp.zeros((), jnp.int32), paused_at_limit(pool)
    return jax.lax.while_loop(some_row_runs, body, start)[1]


def uniforms(pool: Pool, steps: int) -> Float[Array, "R steps 2"]:
    """Two numbers for each row's next tokens, keyed by row and position; drawn before the loop."""

    def of_row(key, start):
        return jax.vmap(
            lambda i: jax.random.uniform(jax.random.fold_in(key, start + i), (2,), jnp.float32)
        )(jnp.arange(steps, dtype=jnp.int32))

    return jax.vmap(of_row)(pool.key, pool.length)


def one_token(
    model: Model,
    params: Params,
    sampling: Sampling,
    processor: Processor | None,
    stop_tokens: Sequence[int],
    weight_version: Int[Array, ""] | int,
    pool: Pool,
    uniform: Float[Array, "R 2"],
    rows: Int[Array, "R"] | None = None,
) -> Pool:
    """Draws a token for each row that runs.

    Args:
      params: unstacked.
      processor: `sampling.chain()`.
      rows: the rows of the pool that caches, carry and `uniform` are for; None: all, in order.
    """
    every = jnp.arange(pool.tokens.shape[0], dtype=jnp.int32)
    slots = pool.tokens.shape[1]
    weight_version = jnp.asarray(weight_version, jnp.int32)
    stops = jnp.asarray(stop_tokens, jnp.int32)

    def own(array):
        return array if rows is None else array[rows]

    before, length = own(pool.status), own(pool.length)
    running, last = before == RUNNING, length - 1
    feed = jnp.take_along_axis(own(pool.tokens), jnp.maximum(last, 0)[:, None], axis=1)
    fed = jnp.where(running, last, slots)[:, None]
    hidden, caches = model.extend(params, pool.caches, feed, fed)
    policy = model.to_logits(params, hidden[:, 0]) / sampling.temperature
    sampled, state = policy, pool.carry
    if processor is not None:
        context = StepContext(length - own(pool.prompt_length), weight_version)
        sampled, state = processor.apply(policy, state, context)
        state = keep(running, state, pool.carry)
    token, behaviour_logp = _draw(sampled, uniform)
    logp = behaviour_logp if processor is None else _logp(policy, token)
    at = jnp.where(running, length, slots)

    def put(array, value):
        place = every if rows is None else rows
        return array.at[place, at].set(value.astype(array.dtype), mode="drop")

    def changed(array, value):
        return value if rows is None else array.at[rows].set(value)

    length = length + running.astype(jnp.int32)
    stopped = jnp.any(token[:, None] == stops[None], axis=1)
    status = jnp.where(stopped, FINISHED, jnp.where(length >= own(pool.limit), BUDGET, RUNNING))
    return replace(
        pool,
        tokens=put(pool.tokens, token),
        length=changed(pool.length, length),
        status=changed(pool.status, jnp.where(running, status, before)),
        caches=caches,
        mask=put(pool.mask, jnp.ones_like(running)),
        logp=put(pool.logp, logp),
        behaviour_logp=put(pool.behaviour_logp, behaviour_logp),
        entropy=put(pool.entropy, _entropy(policy)),
        version=put(pool.version, jnp.broadcast_to(weight_version, token.shape)),
        carry=state,
    )


def _draw(logits: Float[Array, "R V"], uniform: Float[Array, "R 2"]) -> tuple[Array, Array]:
    """Draws from softmax(logits), first a tile of the vocabulary, then a token of it.

    One float32 sum and one float32 uniform over a large vocabulary would move a few tenths of a
    percent of the mass between rare tokens.

    Returns:
      (tokens, log-probs), [R].
    """
    rows, vocabulary = logits.shape
    tile = min(_TILE, vocabulary)
    padding = -vocabulary % tile
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    tiles = jnp.pad(shifted, ((0, 0), (0, padding)), constant_values=-jnp.inf)
    tiles = tiles.reshape(rows, -1, tile)
    mass = jnp.sum(jnp.exp(tiles), axis=-1)
    place = _invert(mass, uniform[:, 1])
    inside = jnp.take_along_axis(tiles, place[:, None, None], axis=1)[:, 0]
    offset = _invert(jnp.exp(inside), uniform[:, 0])
    chosen = jnp.take_along_axis(inside, offset[:, None], axis=-1)[:, 0]
    return place * tile + offset, chosen - jnp.log(jnp.sum(mass, axis=-1))


def _invert(mass: Float[Array, "R n"], uniform: Float[Array, "R"]) -> Int[Array, "R"]:
    """The first entry with mass whose cumulative mass exceeds u · total."""
    # A parallel cumulative sum may rise by rounding where an entry has no mass.
    cumulative = jnp.where(mass > 0, jnp.cumsum(mass, axis=-1), 0)
    total = jnp.max(cumulative, axis=-1, keepdims=True)
    target = uniform[:, None].astype(total.dtype) * total
    return jnp.argmax(cumulative > target, axis=-1).astype(jnp.int32)


def _logp(logits: Float[Array, "R V"], token: Int[Array, "R"]) -> Float[Array, "R"]:
    chosen = jnp.take_along_axis(logits, token[:, None], axis=-1)[:, 0]
    return chosen - jax.nn.logsumexp(logits, axis=-1)


def _entropy(logits: Float[Array, "R V"]) -> Float[Array, "R"]:
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    mass = jnp.exp(shifted)
    total = jnp.sum(mass, axis=-1)
    return jnp.log(total) - jnp.sum(mass * shifted, axis=-1) / total


def keep(running: Bool[Array, "R"], new: Any, old: Any) -> Any:
    """Takes a carry's new rows where the row runs."""

    def choose(new, old):
        return jnp.where(running.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)
