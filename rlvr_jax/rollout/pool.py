"""The pool of rows that the sampler uses, and the primitives that change it.

A row is a sequence in generation: tokens, the records of each token, and the cached keys and
values, all indexed by absolute position. The primitives are pure functions of a `Pool` with static
shapes. A rollout method calls them.

    prefill   append given tokens to rows            fork      copy rows up to a position; or
                                                               into free rows of the same pool
    decode    sample tokens until rows stop          truncate  roll rows back to a length
    verify    append the accepted prefix of a draft  retire    free rows, or end them
    probe     log-probs of tokens, without a change  compact   move the running rows to the front
    reset     restart rows from another prompt       widen     add slots to rows
    resume    continue rows that a stop paused

Invariant: the cache of a row is valid for all slots before its last token, and `decode` feeds that
last token first. A change of `length` is therefore a rollback. Random numbers are keyed by (row
key, position). So a row does not depend on its place, on other rows, or on the number of calls.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.arguments import check_each
from rlvr_jax.keys import checked_key, plain_key
from rlvr_jax.policy import LayerCache, Model, SharedCache
from rlvr_jax.policy.config import wide_dtype
from rlvr_jax.policy.experts import no_routes
from rlvr_jax.rollout.arguments import row_mask, whole_numbers
from rlvr_jax.types.hyperparameters import Count

FREE, RUNNING, BUDGET, FINISHED, PRUNED, STOPPED = 0, 1, 2, 3, 4, 5

_RECORDS = ("mask", "logp", "behaviour_logp", "entropy", "version")
# Recorded of each token only on request.
SOFT = ("soft", "candidate_ids", "candidate_weight", "candidate_noisy_logp")
OPTIONAL = ("token_temperature", "sampled_temperature", "topk_logp", "topk_ids", *SOFT)
# Recorded of each token that the model has read, given or sampled, on request.
_READ = ("routes",)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pool:
    """R rows of at most S tokens.

    Fields:
      tokens: int [R, S]; meaningless from `length` on.
      length, prompt_length: int [R].
      limit: int [R], at most S: the row pauses when its length reaches it. A higher limit lets the
        next `decode` continue it.
      status: int [R]: FREE, RUNNING, BUDGET (paused by the limit), FINISHED (stop token sampled),
        PRUNED (ended, with its record), or STOPPED. A STOPPED row was paused by a text until it is
        prefilled, rolled back or resumed.
      key: [R], random key of the row.
      caches: keys and values of each layer. Rows of one prompt with shared caches must stay
        adjacent: of the primitives, only `decode` accepts them.
      mask: bool [R, S], tokens that were sampled (not given).
      logp, behaviour_logp, entropy: [R, S], of sampled tokens, nats; 0 elsewhere. `logp` is under
        the policy at the sampling temperature, `behaviour_logp` under the distribution really
        sampled from. `entropy` is that of the policy over the whole vocabulary.
      version: int [R, S], weight version that sampled the token; 0 elsewhere.
      group, parent, branch_position, trace: int [R], bookkeeping of forks and restarts; -1 if none.
        `parent` is a row of the pool that was forked, `branch_position` the row's length there.
      stop: int [R], which text of `Sampling.stops` has paused the row, -1 where none has.
      fresh: bool [R], rows emptied since a processor last ran: the next one makes their carry new.
      carry: state of the logits processor, any pytree with leading size R.
      temperature: [R], temperature of the next tokens; None: that of `Sampling`.
      token_temperature, sampled_temperature: [R, S], of sampled tokens; 0 elsewhere. The first is
        the temperature of `logp` and `entropy`, the second that of the sampled distribution, if a
        processor changes it. None until `decode` records them.
      topk_logp, topk_ids: [R, S, k] and int [R, S, k], the k most probable tokens of the policy,
        descending, at recorded sampled tokens; 0 elsewhere.
      soft: bool [R, S]; candidate_ids, candidate_weight, candidate_noisy_logp: [R, S, k]. Records
        of soft thinking, see `Rollouts`. None until `decode` records them.
      routes: [R, S, n, k], the record `routes` of tokens before the last one; None: not recorded.
    """

    tokens: Int[Array, "R S"]
    length: Int[Array, "R"]
    prompt_length: Int[Array, "R"]
    limit: Int[Array, "R"]
    status: Int[Array, "R"]
    key: Key[Array, "R"]
    caches: tuple[LayerCache | SharedCache, ...]
    mask: Bool[Array, "R S"]
    logp: Float[Array, "R S"]
    behaviour_logp: Float[Array, "R S"]
    entropy: Float[Array, "R S"]
    version: Int[Array, "R S"]
    group: Int[Array, "R"]
    parent: Int[Array, "R"]
    branch_position: Int[Array, "R"]
    trace: Int[Array, "R"]
    stop: Int[Array, "R"]
    fresh: Bool[Array, "R"]
    carry: Any = None
    temperature: Float[Array, "R"] | None = None
    token_temperature: Float[Array, "R S"] | None = None
    sampled_temperature: Float[Array, "R S"] | None = None
    topk_logp: Float[Array, "R S k"] | None = None
    topk_ids: Int[Array, "R S k"] | None = None
    soft: Bool[Array, "R S"] | None = None
    candidate_ids: Int[Array, "R S k"] | None = None
    candidate_weight: Float[Array, "R S k"] | None = None
    candidate_noisy_logp: Float[Array, "R S k"] | None = None
    routes: Int[Array, "R S n k"] | None = None


def empty(
    model: Model,
    rows: int,
    slots: int,
    key: Key[Array, "R"] | None = None,
    group: Int[Array, "R"] | None = None,
    *,
    record_routes: bool = False,
) -> Pool:
    """A pool of free rows.

    Args:
      model: model that decodes the rows.
      rows: number of rows.
      slots: most tokens of a row, at most the model's positions.
      key: of each row; None: always the same ones, so that two pools sample alike.
      group: of each row, which its forks inherit; None: -1, no group.
      record_routes: the experts of each token are recorded (`routes`).
    Raises:
      ValueError: no rows, more slots than the model has positions, other keys than one for each
        row, or groups that are no int32. Routes of a dense model.
    """
    check_each(Count, "empty", rows=rows, slots=slots)
    if slots > model.config.max_positions:
        raise ValueError(
            f"empty: slots must be at most the {model.config.max_positions} positions of this"
            f" model, got {slots}"
        )
    if key is None:
        key = jax.vmap(jax.random.fold_in, (None, 0))(plain_key(0), jnp.arange(rows))
    key = checked_key("empty", key, rows)
    none = jnp.full((rows,), -1, jnp.int32)
    zero = jnp.zeros((rows,), jnp.int32)
    record = jnp.zeros((rows, slots), wide_dtype(model.config.compute_dtype))
    return Pool(
        tokens=jnp.zeros((rows, slots), jnp.int32),
        length=zero,
        prompt_length=zero,
        limit=jnp.full((rows,), slots, jnp.int32),
        status=jnp.full((rows,), FREE, jnp.int32),
        key=key,
        caches=model.empty_caches(rows, slots),
        mask=jnp.zeros((rows, slots), bool),
        logp=record,
        behaviour_logp=record,
        entropy=record,
        version=jnp.zeros((rows, slots), jnp.int32),
        group=none if group is None else whole_numbers("empty", "group", group, rows),
        parent=none,
        branch_position=none,
        trace=none,
        stop=none,
        fresh=jnp.zeros((rows,), bool),
        routes=no_routes(model.config, rows, slots) if record_routes else None,
    )


def widen(pool: Pool, slots: int) -> Pool:
    """The same rows with more slots; the limit of a row stays.

    Raises:
      ValueError: fewer slots than there are, or rows share the caches of their prompts.
    """
    own = check_unshared(pool, "widen")
    width = pool.tokens.shape[1]
    if slots < width:
        raise ValueError(f"widen: slots must be at least the {width} of the pool, got {slots}")

    def padded(array, axis):
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, slots - width)
        return jnp.pad(array, widths)

    caches = tuple(LayerCache(padded(c.keys, 3), padded(c.values, 2)) for c in own)
    records = {name: padded(record, 1) for name, record in _records(pool).items()}
    return replace(pool, caches=caches, tokens=padded(pool.tokens, 1), **records)


def _records(pool: Pool) -> dict[str, Array]:
    """What is recorded about each token, by name."""
    records = {name: getattr(pool, name) for name in (*_RECORDS, *OPTIONAL, *_READ)}
    return {name: record for name, record in records.items() if record is not None}


def _emptied(record: Array, places: Bool[Array, "R S"]) -> Array:
    """A record with 0 at these places."""
    places = places.reshape(*places.shape, *[1] * (record.ndim - 2))
    return jnp.where(places, jnp.zeros((), record.dtype), record)


def fork(pool: Pool, source: Int[Array, "Q"], cut: Int[Array, "Q"], key: Key[Array, "Q"]) -> Pool:
    """Returns a pool whose row q is row source[q], truncated to cut[q] tokens, with a new key.

    Args:
      pool: pool of the sources.
      source: rows to copy, checked in lists and numpy arrays; Q may differ from R.
      cut: at least the length of the prompt and at most that of the row, not checked. A finished
        row that is truncated at its end continues after its stop token.
      key: key of each new row.
    Raises:
      ValueError: rows with shared caches; not one key per row; rows that do not exist.
    """
    check_unshared(pool, "fork")
    (rows, slots), number = pool.tokens.shape, len(source)
    source = whole_numbers("fork", "source", source, number, 0, rows - 1)
    cut = whole_numbers("fork", "cut", cut, number, 0, slots)
    key = checked_key("fork", key, *source.shape)
    taken = jax.tree.map(lambda leaf: leaf[source], pool)
    forked = replace(
        taken,
        key=key,
        status=jnp.full(source.shape, RUNNING, jnp.int32),
        stop=jnp.full(source.shape, -1, jnp.int32),
        parent=source,
        branch_position=cut,
    )
    return truncate(forked, cut)


def fork_into(
    pool: Pool,
    source: Int[Array, "Q"],
    cut: Int[Array, "Q"],
    into: Int[Array, "Q"],
    key: Key[Array, "Q"],
    *,
    group: Int[Array, "Q"] | None = None,
    trace: Int[Array, "Q"] | None = None,
    real: Bool[Array, "Q"] | None = None,
) -> Pool:
    """Returns the pool with Q of its rows replaced by forks of other rows, which do not change.

    Row into[q] becomes row q of `fork`, and its earlier contents are lost, free or not. If a row
    occurs twice in `into`, it becomes one of the two forks. This is not checked. All sources are
    read before a row is written.

    Args:
      pool: pool of sources and destinations.
      source, cut: as for `fork`; a row may be forked several times.
      into: rows to write.
      key: key of each fork.
      group, trace: of the forks; None: those of their sources.
      real: False for forks to skip, since Q is static and the number of forks may vary.
    Raises:
      ValueError: rows with shared caches; on the host, rows that do not exist, or groups and
        traces that are not int32.
    """
    check_unshared(pool, "fork_into")
    forks = fork(pool, source, cut, key)
    given = {"group": group, "trace": trace}
    number, rows = len(forks.status), len(pool.status)
    set_by_caller = {
        name: whole_numbers("fork_into", name, values, number)
        for name, values in given.items()
        if values is not None
    }
    forks = replace(forks, **set_by_caller)
    into = whole_numbers("fork_into", "into", into, number, 0, rows - 1)
    if real is not None:
        into = jnp.where(real, into, rows)
    return jax.tree.map(lambda own, new: own.at[into].set(new, mode="drop"), pool, forks)


def check_unshared(pool: Pool, name: str) -> tuple[LayerCache, ...]:
    """The caches of a pool; refuses one whose rows are tied to their places by shared ones."""
    own = tuple(cache for cache in pool.caches if not isinstance(cache, SharedCache))
    if len(own) < len(pool.caches):
        raise ValueError(
            f"{name}: each row must have its own cache, got rows that share the cache of a prompt"
        )
    return own


def truncate(pool: Pool, length: Int[Array, "R"]) -> Pool:
    """Rolls rows back to a length; rows that had stopped run again. No row grows."""
    length = jnp.minimum(jnp.asarray(length, jnp.int32), pool.length)
    shorter = length < pool.length
    lost = jnp.arange(pool.tokens.shape[1], dtype=jnp.int32)[None] >= length[:, None]
    cut = {name: _emptied(record, lost) for name, record in _records(pool).items()}
    ended = (pool.status == FINISHED) | (pool.status == BUDGET) | (pool.status == STOPPED)
    again = shorter & ended
    return replace(
        pool,
        length=length,
        status=jnp.where(again, RUNNING, pool.status),
        stop=jnp.where(again, -1, pool.stop),
        **cut,
    )


def resume(pool: Pool, rows: Bool[Array, "R"]) -> Pool:
    """Lets rows go on that a text has paused, with nothing added to them.

    Raises:
      ValueError: `rows` is no bool for each row.
    """
    rows = row_mask("resume", rows, len(pool.status))
    again = rows & (pool.status == STOPPED)
    return replace(
        pool,
        status=jnp.where(again, RUNNING, pool.status),
        stop=jnp.where(again, -1, pool.stop),
    )


def retire(pool: Pool, rows: Bool[Array, "R"], status: int = FREE) -> Pool:
    """Takes rows out of the game.

    Args:
      rows: True on the rows to retire.
      status: FREE empties them (also group and trace), ready for a new prompt; PRUNED retains the
        contents.
    Raises:
      ValueError: another status, or `rows` is not a bool for each row.
    """
    rows = row_mask("retire", rows, len(pool.status))
    if status == PRUNED:
        return replace(pool, status=jnp.where(rows, PRUNED, pool.status))
    if status != FREE:
        raise ValueError(f"retire: status must be FREE ({FREE}) or PRUNED ({PRUNED}), got {status}")
    pool = cleared(pool, rows)
    none = {name: jnp.where(rows, -1, getattr(pool, name)) for name in ("group", "trace")}
    return replace(pool, **none)


def cleared(pool: Pool, rows: Bool[Array, "R"]) -> Pool:
    """Empties rows; their key, limit, temperature, group and trace stay."""
    records = {name: _emptied(record, rows[:, None]) for name, record in _records(pool).items()}
    return replace(
        pool,
        length=jnp.where(rows, 0, pool.length),
        prompt_length=jnp.where(rows, 0, pool.prompt_length),
        status=jnp.where(rows, FREE, pool.status),
        parent=jnp.where(rows, -1, pool.parent),
        branch_position=jnp.where(rows, -1, pool.branch_position),
        stop=jnp.where(rows, -1, pool.stop),
        fresh=pool.fresh | rows,
        **records,
    )


def paused_at_limit(pool: Pool) -> Pool:
    """The pool with those rows paused that are at their limit, and no others."""
    at_limit = pool.length >= pool.limit
    in_game = (pool.status == RUNNING) | (pool.status == BUDGET)
    return replace(
        pool, status=jnp.where(in_game, jnp.where(at_limit, BUDGET, RUNNING), pool.status)
    )


def compact(pool: Pool, size: int | None = None) -> tuple[Pool, Int[Array, "size"]]:
    """Moves the rows that the next `decode` runs to the front; their order does not change.

    Args:
      size: rows of the new pool, at most R. Later rows are dropped, so read them before and have at
        most `size` running rows. None: all.
    Returns:
      The pool and the old index of each of its rows.
    Raises:
      ValueError: size outside 1 … R, or rows share the caches of their prompts.
    """
    check_unshared(pool, "compact")
    pool, rows = paused_at_limit(pool), pool.status.shape[0]
    size = rows if size is None else size
    if not 1 <= size <= rows:
        raise ValueError(f"compact: size must be in 1 … {rows}, got {size}")
    order = jnp.argsort(pool.status != RUNNING, stable=True)[:size].astype(jnp.int32)
    return jax.tree.map(lambda leaf: leaf[order], pool), order
