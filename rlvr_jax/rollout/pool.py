"""The pool of rows that all sampling works on, and the primitives that change it.

A row is a sequence that is being written: tokens, what was recorded about each, and the cached keys
and values, all indexed by absolute position. The primitives are pure functions of a `Pool` with
static shapes; a rollout method is a small driver of them.

    prefill   append given tokens to rows            fork      copy rows, cut at a position
    decode    draw tokens until rows stop            truncate  roll rows back to a length

The invariant that makes cutting free: the cache of a row is right for all slots before its last
token, and `decode` feeds that last token first. A change of `length` therefore is a rollback.
Random numbers are keyed by (row key, position): a row does not depend on its place in the pool, on
the rows beside it, or on how many calls drew it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.policy import LayerCache, Model, Params
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.rollout.processors import Sampling, StepContext

__all__ = ["BUDGET", "FINISHED", "FREE", "RUNNING", "Pool", "decode", "empty", "fork", "prefill"]
__all__ += ["truncate"]

FREE, RUNNING, BUDGET, FINISHED = 0, 1, 2, 3

_TILE = 512  # tokens of the vocabulary that one uniform number chooses among


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pool:
    """R rows of at most S tokens.

    Fields:
      tokens: int [R, S]; meaningless from `length` on.
      length, prompt_length: int [R].
      limit: int [R], the row pauses when its length reaches it.
      status: int [R]: FREE, RUNNING, BUDGET (paused by the limit), FINISHED (stop token drawn).
      key: [R], the row's random key.
      caches: keys and values of each layer.
      mask: bool [R, S], tokens that were sampled (not given).
      logp, behaviour_logp, entropy: [R, S], of sampled tokens when they were drawn: log-prob under
        the policy at the sampling temperature, under the distribution really sampled from, and
        entropy of the former over the whole vocabulary (nats; 0 elsewhere).
      version: int [R, S], weight version that drew the token.
      group, parent, branch_position, trace: int [R], bookkeeping of forks and restarts; -1 if none.
      carry: state of the logits processor, any pytree with leading size R.
    """

    tokens: Int[Array, "R S"]
    length: Int[Array, "R"]
    prompt_length: Int[Array, "R"]
    limit: Int[Array, "R"]
    status: Int[Array, "R"]
    key: Key[Array, "R"]
    caches: tuple[LayerCache, ...]
    mask: Bool[Array, "R S"]
    logp: Float[Array, "R S"]
    behaviour_logp: Float[Array, "R S"]
    entropy: Float[Array, "R S"]
    version: Int[Array, "R S"]
    group: Int[Array, "R"]
    parent: Int[Array, "R"]
    branch_position: Int[Array, "R"]
    trace: Int[Array, "R"]
    carry: Any = None


def empty(model: Model, rows: int, slots: int) -> Pool:
    """A pool of free rows."""
    none = jnp.full((rows,), -1, jnp.int32)
    zero = jnp.zeros((rows,), jnp.int32)
    record = jnp.zeros((rows, slots), wide_dtype(model.config.compute_dtype))
    return Pool(
        tokens=jnp.zeros((rows, slots), jnp.int32),
        length=zero,
        prompt_length=zero,
        limit=jnp.full((rows,), slots, jnp.int32),
        status=jnp.full((rows,), FREE, jnp.int32),
        key=jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(0), jnp.arange(rows)),
        caches=model.empty_caches(rows, slots),
        mask=jnp.zeros((rows, slots), bool),
        logp=record,
        behaviour_logp=record,
        entropy=record,
        version=jnp.zeros((rows, slots), jnp.int32),
        group=none,
        parent=none,
        branch_position=none,
        trace=none,
    )


def prefill(
    model: Model,
    params: Params,
    pool: Pool,
    tokens: Int[Array, "R n"],
    count: Int[Array, "R"],
) -> Pool:
    """Appends given tokens to rows and fills their cache; mask, log-probs and entropy stay 0.

    Args:
      tokens: right-padded; row r gets its first count[r], 0 leaves it alone.
    """
    slots = pool.tokens.shape[1]
    tokens, count = jnp.asarray(tokens, jnp.int32), jnp.asarray(count, jnp.int32)
    offsets = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    # Padding goes to a slot past the end, where writes are dropped.
    positions = jnp.where(offsets < count[:, None], pool.length[:, None] + offsets, slots)
    rows = jnp.arange(tokens.shape[0], dtype=jnp.int32)[:, None]
    # The last token of a row may not be cached yet (the invariant): feed it once more.
    last = jnp.maximum(pool.length - 1, 0)
    again = jnp.take_along_axis(pool.tokens, last[:, None], axis=1)
    feed = jnp.concatenate([again, tokens], axis=1)
    fed = jnp.concatenate([jnp.where(pool.length > 0, last, slots)[:, None], positions], axis=1)
    _, caches = model.extend(params, pool.caches, feed, fed)
    started = (pool.status == FREE) & (count > 0)
    return replace(
        pool,
        tokens=pool.tokens.at[rows, positions].set(tokens, mode="drop"),
        length=pool.length + count,
        prompt_length=jnp.where(started, count, pool.prompt_length),
        status=jnp.where(started, RUNNING, pool.status),
        caches=caches,
    )


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

    Args:
      stop_tokens: ids that finish a row; the stop token is part of the response.
      weight_version: recorded with every token.
    """
    processor = sampling.chain()
    if processor is not None and pool.carry is None:
        pool = replace(pool, carry=processor.init(pool.tokens.shape[0]))
    params = model.unstacked(params)
    rows = jnp.arange(pool.tokens.shape[0], dtype=jnp.int32)
    slots = pool.tokens.shape[1]
    weight_version = jnp.asarray(weight_version, jnp.int32)
    stops = jnp.asarray(tuple(stop_tokens), jnp.int32)
    # Drawn before the loop: two numbers per row and step, keyed by the position they are for.
    uniforms = jax.vmap(
        lambda key, start: jax.vmap(
            lambda i: jax.random.uniform(jax.random.fold_in(key, start + i), (2,), jnp.float32)
        )(jnp.arange(steps, dtype=jnp.int32))
    )(pool.key, pool.length)

    # A prefill or a fork may have left a row at its limit.
    paused = (pool.status == RUNNING) & (pool.length >= pool.limit)
    pool = replace(pool, status=jnp.where(paused, BUDGET, pool.status))

    def body(carry):
        step, pool = carry
        running = pool.status == RUNNING
        last = pool.length - 1
        feed = jnp.take_along_axis(pool.tokens, jnp.maximum(last, 0)[:, None], axis=1)
        fed = jnp.where(running, last, slots)[:, None]
        hidden, caches = model.extend(params, pool.caches, feed, fed)
        policy = model.to_logits(params, hidden[:, 0]) / sampling.temperature
        sampled, state = policy, pool.carry
        if processor is not None:
            context = StepContext(pool.length - pool.prompt_length, weight_version)
            sampled, state = processor.apply(policy, state, context)
            state = _keep(running, state, pool.carry)
        token, behaviour_logp = _draw(sampled, uniforms[:, step])
        logp = behaviour_logp if processor is None else _logp(policy, token)
        at = jnp.where(running, pool.length, slots)

        def put(array, value):
            return array.at[rows, at].set(value.astype(array.dtype), mode="drop")

        length = pool.length + running.astype(jnp.int32)
        stopped = jnp.any(token[:, None] == stops[None], axis=1)
        status = jnp.where(stopped, FINISHED, jnp.where(length >= pool.limit, BUDGET, RUNNING))
        pool = replace(
            pool,
            tokens=put(pool.tokens, token),
            length=length,
            status=jnp.where(running, status, pool.status),
            caches=caches,
            mask=put(pool.mask, jnp.ones_like(running)),
            logp=put(pool.logp, logp),
            behaviour_logp=put(pool.behaviour_logp, behaviour_logp),
            entropy=put(pool.entropy, _entropy(policy)),
            version=put(pool.version, jnp.broadcast_to(weight_version, token.shape)),
            carry=state,
        )
        return step + 1, pool

    def some_row_runs(carry):
        step, pool = carry
        return (step < steps) & jnp.any(pool.status == RUNNING)

    return jax.lax.while_loop(some_row_runs, body, (jnp.zeros((), jnp.int32), pool))[1]


def fork(pool: Pool, source: Int[Array, "Q"], cut: Int[Array, "Q"], key: Key[Array, "Q"]) -> Pool:
    """A pool whose row q is row source[q] cut to cut[q] tokens, running, with a key of its own.

    Args:
      source: rows to copy; Q may differ from R.
      cut: at least the prompt's length and at most the row's.
    """
    source, cut = jnp.asarray(source, jnp.int32), jnp.asarray(cut, jnp.int32)
    taken = jax.tree.map(lambda leaf: leaf[source], pool)
    forked = replace(
        taken,
        key=key,
        status=jnp.full(source.shape, RUNNING, jnp.int32),
        parent=source,
        branch_position=cut,
    )
    return truncate(forked, cut)


def truncate(pool: Pool, length: Int[Array, "R"]) -> Pool:
    """Rolls rows back to a length; rows that had stopped run again. No row grows."""
    length = jnp.minimum(jnp.asarray(length, jnp.int32), pool.length)
    shorter = length < pool.length
    keep = jnp.arange(pool.tokens.shape[1], dtype=jnp.int32)[None] < length[:, None]
    cut = {
        name: jnp.where(keep, getattr(pool, name), jnp.zeros((), getattr(pool, name).dtype))
        for name in ("mask", "logp", "behaviour_logp", "entropy", "version")
    }
    stopped = (pool.status == FINISHED) | (pool.status == BUDGET)
    status = jnp.where(shorter & stopped, RUNNING, pool.status)
    return replace(pool, length=length, status=status, **cut)


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


def _keep(running: Bool[Array, "R"], new: Any, old: Any) -> Any:
    """Takes a carry's new rows where the row runs."""

    def choose(new, old):
        return jnp.where(running.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)
