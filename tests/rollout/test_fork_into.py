"""Forks into free rows of the same pool, beside the rows that they come from."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pool_rows import (
    EXACT,
    GREEDY,
    MODEL,
    PARAMS,
    PROMPT_LENGTH,
    PROMPTS,
    RECORD,
    ROWS,
    SLOTS,
    STEPS,
    assert_same_rows,
    draw,
    give,
    keys,
    started,
)

from rlvr_jax.rollout import FREE, RUNNING, Processor, Sampling, empty, fork_into

WIDE = 8  # four rows with the prompts, four that are free
branch = jax.jit(fork_into)
# Row 1 is forked twice, at two places; row 3 behind its prompt.
SOURCE, INTO = np.array([1, 1, 3]), np.array([6, 4, 7])
CUT = PROMPT_LENGTH[SOURCE] + np.array([1, 4, 0], np.int32)


def beside():
    """The rows of `started` with as many free ones behind them."""
    pool = empty(MODEL, WIDE, SLOTS)
    keyed = jnp.concatenate([keys(), pool.key[ROWS:]])
    pool = replace(
        pool, key=keyed, group=pool.group.at[:ROWS].set(jnp.arange(ROWS, dtype=jnp.int32))
    )
    pool = replace(pool, trace=pool.trace.at[1].set(8))
    tokens, count = np.pad(PROMPTS, ((0, 4), (0, 0))), np.pad(PROMPT_LENGTH, (0, 4))
    return give(PARAMS, pool, tokens, count)


def rows_of(pool, rows):
    return jax.tree.map(lambda leaf: leaf[rows], pool)


@pytest.mark.thorough
def test_a_fork_goes_on_as_if_freshly_begun_and_the_others_as_if_nothing_was():
    pool = draw(beside())
    forked = branch(pool, SOURCE, CUT, INTO, keys(3, seed=6))
    assert_same_rows(rows_of(forked, slice(ROWS)), rows_of(pool, slice(ROWS)))
    assert_array_equal(forked.status[4:], [RUNNING, FREE, RUNNING, RUNNING])
    forked = draw(forked, sampling=GREEDY)
    tokens = np.zeros((ROWS, SLOTS), np.int32)
    tokens[:3] = np.asarray(pool.tokens)[SOURCE]
    fresh = draw(started(tokens[:, :8], np.append(CUT, 1)), sampling=GREEDY)
    for number, row in enumerate(INTO):
        length = CUT[number] + STEPS
        assert int(forked.length[row]) == length
        assert_array_equal(forked.tokens[row, :length], fresh.tokens[number, :length])
        sampled = slice(CUT[number], length)
        assert_allclose(forked.logp[row, sampled], fresh.logp[number, sampled], **EXACT)
        earlier = slice(0, CUT[number])
        for name in ("mask", *RECORD):
            before, after = (getattr(p, name)[:, earlier] for p in (pool, forked))
            assert_array_equal(after[row], before[SOURCE[number]])
    kept = draw(pool, sampling=GREEDY)
    assert_array_equal(forked.tokens[:ROWS], kept.tokens[:ROWS])


@pytest.mark.thorough
def test_forks_say_where_they_come_from_and_what_the_caller_says():
    pool = draw(beside(), 5)
    forked = branch(pool, SOURCE, CUT, INTO, keys(3))
    assert_array_equal(forked.parent, [-1, -1, -1, -1, 1, -1, 1, 3])
    assert_array_equal(forked.branch_position[INTO], CUT)
    assert_array_equal(forked.length[INTO], CUT)
    assert_array_equal(forked.group, [0, 1, 2, 3, 1, -1, 1, 3])
    assert_array_equal(forked.trace, [-1, 8, -1, -1, 8, -1, 8, -1])
    named = branch(pool, SOURCE, CUT, INTO, keys(3), group=SOURCE + 9, trace=INTO)
    assert_array_equal(named.group[INTO], SOURCE + 9)
    assert_array_equal(named.trace[INTO], INTO)
    assert_array_equal(named.group[:ROWS], np.arange(ROWS))


def test_what_is_not_real_is_not_forked():
    pool = draw(beside(), 5)
    some = branch(pool, SOURCE, CUT, INTO, keys(3), real=np.array([False, True, False]))
    alone = branch(pool, SOURCE[1:2], CUT[1:2], INTO[1:2], keys(3)[1:2])
    assert_same_rows(some, alone)
    assert_array_equal(some.status[4:], [RUNNING, FREE, FREE, FREE])
    assert_array_equal(jax.random.key_data(some.key), jax.random.key_data(alone.key))


def test_a_fork_draws_with_its_own_key_and_takes_its_carry_along():
    counting = Sampling(
        processor=Processor(
            lambda rows: jnp.zeros(rows, jnp.int32), lambda logits, carry, _: (logits, carry + 1)
        )
    )
    pool = draw(beside(), 2, counting)
    source, cut = np.zeros(3, np.int32), np.full(3, PROMPT_LENGTH[0] + 2)
    own = jnp.concatenate([pool.key[:1], keys(2, seed=7)])
    forked = draw(branch(pool, source, cut, INTO, own), 6, counting)
    assert_array_equal(forked.carry[0], [8, 8, 8, 8, 8, 0, 8, 8])
    assert_array_equal(forked.tokens[6], forked.tokens[0])
    assert len({tuple(row) for row in np.asarray(forked.tokens)[[0, 4, 7]]}) == 3


def test_a_row_may_be_forked_and_written_over_at_once():
    pool = draw(beside(), 3)
    turned = branch(pool, np.array([0, 1]), PROMPT_LENGTH[:2] + 3, np.array([1, 0]), keys(2))
    for name in ("tokens", "length", "logp"):
        wanted = np.asarray(getattr(pool, name))[[1, 0]]
        assert_array_equal(getattr(turned, name)[:2], wanted)


def test_rows_that_share_the_caches_of_prompts_are_not_forked():
    pool = started()
    shared = MODEL.shared_caches(pool.caches, pool.prompt_length, STEPS)
    refused = (
        "fork_into: each row must have its own cache, got rows that share the cache of a prompt"
    )
    with pytest.raises(ValueError, match=refused):
        fork_into(replace(pool, caches=shared), SOURCE, CUT, INTO, keys(3))
