"""Continuous batching: the loop of the sampler over more responses than slots.

The next row takes the slot of a finished one. The common beginning of several responses to a prompt
is computed once. All of them sample their next token from it, each with its random numbers, until
they differ. Then they copy its cache, if it still exists when they get a slot. Equal responses to a
prompt are therefore computed once, and an evaluation is faster if the entropy is lower.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from rlvr_jax.policy import LayerCache, SharedCache
from rlvr_jax.rollout.decode import Drawing, Places, draw, keep, look_ahead, uniforms
from rlvr_jax.rollout.pool import RUNNING, Pool, paused_at_limit
from rlvr_jax.rollout.processors import TokenContext
from rlvr_jax.rollout.records import with_records


class _Slots(NamedTuple):
    """Slots in which rows are computed: they have the caches and the processor's carry.

    Fields:
      row: whose next token is computed, for itself and for the rows that follow it.
      place: how many tokens of its response it has been fed, with the one that is fed next. A row
        that went apart from the one it followed may have more: it is fed them first.
      taken: False where no row is left to be computed.
    """

    row: Int[Array, "C"]
    place: Int[Array, "C"]
    taken: Bool[Array, "C"]


def decode_in_turn(
    how: Drawing,
    pool: Pool,
    prompts: tuple[LayerCache, ...],
    at_once: int,
    steps: int,
    stop_state: Int[Array, "N"] | None = None,
) -> Pool:
    """Samples at most `steps` tokens for every row of a pool, of which `at_once` are computed.

    A row in a slot has a cache: a copy of the cache of its prompt, and a ring of `steps` places.
    All rows write at the same place of the ring. In a bitwise model it is one cache, in which a
    token has the slot of its position. A row is fed only its tokens. A row that already
    has tokens when it gets a slot copies the keys that it shares with a computed row of its
    prompt. If the processor has a state from token to token, it processes these tokens again.

    Args:
      how: its constants have a leading axis N or are scalars; a prompt's rows have the same.
      pool: N running rows without caches, N / P of them side by side answer each prompt. Those of a
        prompt have one temperature.
      prompts: caches of the P prompts; those of a bitwise model have the slots of whole rows.
      at_once: below N.
      steps: largest number of tokens of a row.
      stop_state: as for `decode`.
    Returns:
      The pool, without caches or the processor's carry.
    """
    rows, columns = pool.tokens.shape
    each = rows // len(prompts[0].keys)
    model, sampling, constants = how.model, how.sampling, how.constants
    whole = model.config.bitwise
    processor = sampling.chain()
    watch = sampling.stops
    pool = with_records(model, pool, sampling, processor, record_top=how.record_top)
    fresh = None if processor is None else processor.init(at_once)
    again = bool(jax.tree.leaves(fresh))  # its state at an earlier token is not known
    numbers = uniforms(pool, steps)
    every, slot_numbers = (jnp.arange(n, dtype=jnp.int32) for n in (rows, at_once))
    prompt_length = pool.prompt_length

    def at_slots(slots, value, otherwise):
        """The value of the slot of each row."""
        place = jnp.where(slots.taken, slots.row, rows)
        return jnp.full((rows,), otherwise, value.dtype).at[place].set(value, mode="drop")

    def sampled(pool, ahead, slots, leader, watched):
        """The pool with the next token of all rows that follow a computed row, the row that each
        one follows now, and the states of `watch`."""
        slot, length = at_slots(slots, slot_numbers, -1)[leader], pool.length
        due = (pool.status == RUNNING) & (slot >= 0)
        due &= length - prompt_length == slots.place[slot]
        number = jnp.sum(due, dtype=jnp.int32)
        # As many at a time as there are slots: all that are due where no row follows another.
        order = jnp.flatnonzero(due, size=-(-rows // at_once) * at_once, fill_value=0)
        order = order.astype(jnp.int32)

        def some(carry):
            first, pool = carry
            part = jax.lax.dynamic_slice_in_dim(order, first, at_once)
            uniform = numbers[part, (pool.length - prompt_length)[part]]
            real = first + slot_numbers < number
            pool = draw(how, pool, ahead, uniform, real, Places(part, slot[part]))
            return first + at_once, pool

        start = jnp.zeros((), jnp.int32), pool
        pool = jax.lax.while_loop(lambda carry: carry[0] < number, some, start)[1]
        if watch is not None:
            pool, watched = watch.paused(pool, due, watched)
        at = jnp.minimum(length, columns - 1)
        token = pool.tokens[every, at]
        apart = due & (pool.status == RUNNING) & (token != pool.tokens[leader, at])
        leader = jnp.where(apart, _first_alike(apart, leader, token, each), leader)
        return pool, leader, watched

    def moved_in(pool, slots, enters, step):
        """The caches with the beginnings of the entering rows, and the slots with their lengths."""
        caches, known = pool.caches, pool.length - prompt_length
        runs, order = slots.taken & ~enters, jnp.argsort(~enters, stable=True)

        def enter(number, carry):
            held, place, origin = carry
            to = order[number]
            row = slots.row[to]
            same = pool.tokens[slots.row] == pool.tokens[row][None]
            shared = jnp.sum(jnp.cumprod(same, axis=1), axis=1, dtype=jnp.int32)
            shared = jnp.minimum(shared - prompt_length[row], place - 1)
            shared = jnp.where(runs & (slots.row // each == row // each), shared, 0)
            source = jnp.argmax(shared)
            # Its prompt is cached to the end: only a row without tokens is fed the last of that.
            begin = 0 if again else jnp.minimum(shared[source] + 1, known[row])
            first = (step + 1 - begin) % steps
            turn = first - origin[source]

            def put(array, part):
                return jax.lax.dynamic_update_slice_in_dim(array, part, to, axis=0)

            def whole_row(layer, given):
                def row_of(own, prompt):
                    return jnp.where(shared[source] > 0, own[source], prompt[row // each])[None]

                return jax.tree.map(put, layer, jax.tree.map(row_of, layer, given))

            def copied(prompt, own, given):
                given = jax.tree.map(lambda x: x[row // each][None], given)
                shifted = LayerCache(
                    jnp.roll(own.keys[source], turn, axis=2)[None],
                    jnp.roll(own.values[source], turn, axis=1)[None],
                )
                return jax.tree.map(put, prompt, given), jax.tree.map(put, own, shifted)

            held = tuple(
                whole_row(layer, given) if whole else copied(*layer, given=given)
                for layer, given in zip(held, prompts, strict=True)
            )
            return held, place.at[to].set(begin), origin.at[to].set(first)

        held = caches if whole else tuple(cache[:2] for cache in caches)
        carry = held, slots.place, jnp.zeros_like(slots.place) if whole else caches[0].origin
        carry = jax.lax.fori_loop(0, jnp.sum(enters, dtype=jnp.int32), enter, carry)
        held, place, origin = carry
        slots = slots._replace(place=place)
        if whole:
            return held, slots
        start = jnp.where(enters, prompt_length[slots.row], caches[0].start)
        caches = tuple(SharedCache(*layer, start=start, origin=origin) for layer in held)
        return caches, slots

    def body(carry):
        step, pool, slots, leader, watched = carry
        last = prompt_length[slots.row] + slots.place - 1
        fed = jnp.where(slots.taken, last, columns)
        # One per slot; scalars are for all.
        temperature, own = jax.tree.map(
            lambda x: x[slots.row] if x.ndim else x, (pool.temperature, constants)
        )
        token = pool.tokens[slots.row, last]
        context = TokenContext(slots.place, how.weight_version, temperature, own, token)
        ahead, caches, state = look_ahead(how, pool, context, token[:, None], fed, slots.taken)
        pool, leader, watched = sampled(pool, ahead, slots, leader, watched)
        runs = pool.status == RUNNING
        slots = _Slots(slots.row, slots.place + 1, slots.taken & runs[slots.row])
        waiting = runs & (leader == every) & ~at_slots(slots, slots.taken, False)
        queue = jnp.flatnonzero(waiting, size=at_once, fill_value=0).astype(jnp.int32)
        turn = jnp.cumsum(~slots.taken, dtype=jnp.int32) - 1
        enters = ~slots.taken & (turn < jnp.sum(waiting, dtype=jnp.int32))
        row = jnp.where(enters, queue[jnp.maximum(turn, 0)], slots.row)
        slots = _Slots(row, slots.place, slots.taken | enters)
        caches, slots = moved_in(replace(pool, caches=caches), slots, enters, step)
        pool = replace(pool, caches=caches, carry=keep(~enters, state, fresh))
        return step + 1, pool, slots, leader, watched

    def some_row_runs(carry):
        return jnp.any(carry[1].status == RUNNING)

    # All samples of a prompt follow the first one.
    first = jnp.minimum(slot_numbers * each, rows - 1)
    slots = _Slots(first, jnp.zeros_like(first), slot_numbers * each < rows)
    held = jax.tree.map(lambda leaf: leaf[first // each], prompts)
    caches = held
    if not whole:
        caches = model.shared_caches(held, prompt_length[first], steps, jnp.zeros_like(first))
    pool = replace(paused_at_limit(pool), caches=caches, carry=fresh)
    watched = None if watch is None else watch.written(pool, stop_state)
    start = jnp.zeros((), jnp.int32), pool, slots, every // each * each, watched
    pool = jax.lax.while_loop(some_row_runs, body, start)[1]
    return replace(pool, caches=(), carry=None)


def _first_alike(
    apart: Bool[Array, "N"], leader: Int[Array, "N"], token: Int[Array, "N"], each: int
) -> Int[Array, "N"]:
    """The first row for each that went apart from the same row, with the same token."""
    apart, before, token = (x.reshape(-1, each) for x in (apart, leader, token))
    alike = apart[:, None] & (before[:, :, None] == before[:, None])
    alike &= token[:, :, None] == token[:, None]
    first = jnp.argmax(alike, axis=-1).astype(jnp.int32)
    return (jnp.arange(len(apart), dtype=jnp.int32)[:, None] * each + first).reshape(-1)
