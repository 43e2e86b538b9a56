"""Given tokens, drafts, questions on the side, and rows that end and begin anew."""

from dataclasses import replace
from functools import partial

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
    VOCABULARY,
    WIDTH,
    assert_same_rows,
    draw,
    give,
    keys,
    logits_at,
    started,
)

from rlvr_jax.rollout import (
    BUDGET,
    FINISHED,
    FREE,
    PRUNED,
    RUNNING,
    compact,
    empty,
    prefill,
    probe,
    reset,
    retire,
    truncate,
    verify,
)

DRAFT = 5


def always(logp, uniform):
    return uniform < 2


def likely(logp, uniform):
    """Speculative acceptance against a uniform draft."""
    return jnp.log(uniform) <= logp + np.log(VOCABULARY)


check = jax.jit(partial(verify, MODEL), static_argnames=("accept", "stop_tokens"))
ask = jax.jit(partial(probe, MODEL))
begin_anew = jax.jit(partial(reset, MODEL))


def drafts(pool, number=DRAFT):
    """What a pool has drawn behind its prompts, [R, number]."""
    index = np.asarray(pool.prompt_length)[:, None] + np.arange(number)
    return np.take_along_axis(np.asarray(pool.tokens), index, axis=1)


@pytest.mark.thorough
def test_a_draft_of_the_same_policy_is_taken_over_as_if_drawn():
    sampled = draw(started(), DRAFT)
    count = np.full(ROWS, DRAFT)
    taken = check(PARAMS, started(), drafts(sampled), count, accept=always)
    assert_same_rows(taken, sampled)
    for ours, theirs in zip(taken.caches, sampled.caches, strict=True):
        for row, length in enumerate(PROMPT_LENGTH + DRAFT - 1):
            # the last token's slot is filled when it is fed
            for left, right in (
                [cache.keys[row, :, :, :length] for cache in (ours, theirs)],
                [cache.values[row, :, :length] for cache in (ours, theirs)],
            ):
                assert_allclose(left, right, **EXACT)
    assert_same_rows(draw(taken, 2), draw(sampled, 2))


@pytest.mark.thorough
def test_a_draft_is_cut_at_its_first_rejected_token():
    draft = np.random.default_rng(4).integers(1, VOCABULARY, (ROWS, DRAFT)).astype(np.int32)
    count = np.array([5, 0, 3, 5])
    limits = np.array([2, 9, 9, 0])

    def first_tokens(logp, uniform):
        return jnp.arange(DRAFT)[None] < limits[:, None]

    pool = verify(MODEL, PARAMS, started(), draft, count, first_tokens)
    assert_array_equal(pool.length, PROMPT_LENGTH + np.array([2, 0, 3, 0]))
    assert_array_equal(np.sum(pool.mask, axis=1), [2, 0, 3, 0])
    assert_array_equal(pool.status, np.full(ROWS, RUNNING))
    for row, kept in enumerate((2, 0, 3, 0)):
        begin = PROMPT_LENGTH[row]
        assert_array_equal(pool.tokens[row, begin : begin + kept], draft[row, :kept])
        for position in range(begin, begin + kept):
            logits = logits_at(pool.tokens[row], position - 1)
            logp = logits[pool.tokens[row, position]] - jax.nn.logsumexp(logits)
            assert_allclose(pool.logp[row, position], logp, **EXACT)
            assert_allclose(pool.behaviour_logp[row, position], logp, **EXACT)
    fresh = give(
        PARAMS, started(), np.where(np.arange(WIDTH) < 3, draft[:, :WIDTH], 0), [2, 0, 3, 0]
    )
    assert_allclose(
        draw(pool, 1).logp.sum(1) - pool.logp.sum(1), draw(fresh, 1).logp.sum(1), **EXACT
    )


@pytest.mark.thorough
def test_acceptance_does_not_depend_on_the_other_rows_and_keeps_what_was_recorded():
    draft = np.random.default_rng(5).integers(1, VOCABULARY, (ROWS, DRAFT)).astype(np.int32)
    count = np.full(ROWS, DRAFT)
    stored = np.random.default_rng(6).normal(-2, 1, (ROWS, DRAFT))
    whole = check(
        PARAMS, started(), draft, count, accept=likely, behaviour_logp=stored, weight_version=3
    )
    order = np.array([2, 0, 3, 1])
    permuted = jax.tree.map(lambda leaf: leaf[order], started())
    permuted = check(
        PARAMS, permuted, draft[order], count, accept=likely, behaviour_logp=stored[order]
    )
    kept = np.asarray(whole.length) - PROMPT_LENGTH
    assert 0 < kept.sum() < kept.size * DRAFT
    assert_array_equal(permuted.length, np.asarray(whole.length)[order])
    for row, number in enumerate(kept):
        part = slice(PROMPT_LENGTH[row], PROMPT_LENGTH[row] + number)
        assert_array_equal(whole.behaviour_logp[row, part], stored[row, :number])
        assert_array_equal(whole.version[row, part], np.full(number, 3))


def test_a_draft_ends_with_a_stop_token_or_at_the_limit():
    draft = np.array([[3, 0, 3], [0, 3, 4], [3, 4, 4], [4, 0, 0]], np.int32)
    limit = jnp.asarray(PROMPT_LENGTH + np.array([2, 9, 2, 9], np.int32))
    pool = replace(started(), limit=limit)
    pool = check(PARAMS, pool, draft, np.array([3, 3, 3, 1]), accept=always, stop_tokens=(0,))
    assert_array_equal(pool.length, PROMPT_LENGTH + np.array([2, 3, 2, 1]))
    assert_array_equal(pool.status, [FINISHED, RUNNING, BUDGET, RUNNING])


def test_the_embeddings_of_tokens_are_as_good_as_the_tokens():
    soft = np.arange(WIDTH)[None] < np.array([2, 1, 2, 0])[:, None]
    embeddings = PARAMS["embedding"][PROMPTS]
    # fillers where embeddings stand, and embeddings that nobody looks at where tokens do
    tokens = np.where(soft, 0, PROMPTS)
    given = jnp.where(soft[:, :, None], embeddings, 7.0)
    pool = replace(empty(MODEL, ROWS, SLOTS), key=keys())
    pool = give(PARAMS, pool, tokens, PROMPT_LENGTH, embeddings=given, embedded=soft)
    assert_array_equal(
        pool.tokens[:, :WIDTH], np.where(np.arange(WIDTH) < PROMPT_LENGTH[:, None], tokens, 0)
    )
    soft_rows, hard_rows = (draw(begun, sampling=GREEDY) for begun in (pool, started()))
    behind = np.arange(SLOTS) >= PROMPT_LENGTH[:, None]
    assert_array_equal(*(np.where(behind, p.tokens, 0) for p in (soft_rows, hard_rows)))
    for name in RECORD:
        assert_allclose(getattr(soft_rows, name), getattr(hard_rows, name), **EXACT)


def test_other_embeddings_than_those_of_tokens_are_seen():
    soft = np.arange(WIDTH)[None] < np.array([2, 1, 2, 0])[:, None]
    embeddings = np.random.default_rng(9).normal(0, 0.3, (*soft.shape, MODEL.config.width))
    pool = replace(empty(MODEL, ROWS, SLOTS), key=keys())
    pool = give(PARAMS, pool, PROMPTS, PROMPT_LENGTH, embeddings=embeddings, embedded=soft)
    one, plain = draw(pool, 1), draw(started(), 1)
    assert np.array_equal(one.entropy[3], plain.entropy[3])
    assert not np.any(np.isclose(one.entropy[:3].sum(1), plain.entropy[:3].sum(1)))


@pytest.mark.parametrize(
    "given, message",
    [
        ({"embedded": np.ones((ROWS, WIDTH), bool)}, "given together, got only embedded"),
        (
            {"embeddings": np.ones((ROWS, 2, 3)), "embedded": np.ones((ROWS, 2), bool)},
            r"the shape \(4, 4, .*\) and embedded \(4, 4\), got \(4, 2, 3\) and \(4, 2\)",
        ),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(given, message):
    with pytest.raises(ValueError, match=f"prefill: embeddings .*{message}"):
        prefill(MODEL, PARAMS, started(), PROMPTS, PROMPT_LENGTH, **given)


def test_a_finished_row_runs_again_when_it_is_given_tokens():
    pool = replace(started(), status=jnp.array([FINISHED, FINISHED, PRUNED, BUDGET]))
    count = np.array([2, 0, 1, 1])
    pool = give(PARAMS, pool, np.ones((ROWS, WIDTH), np.int32), count)
    assert_array_equal(pool.status, [RUNNING, FINISHED, PRUNED, BUDGET])


@pytest.mark.thorough
def test_a_probe_says_what_a_full_pass_says():
    pool = draw(started(), 3)
    query = np.random.default_rng(7).integers(0, VOCABULARY, (ROWS, 3)).astype(np.int32)
    count = np.array([3, 1, 0, 2])
    logp, hidden = ask(PARAMS, pool, query, count)
    assert hidden.shape[:2] == (ROWS, 4)
    for row in range(ROWS):
        length = int(pool.length[row])
        sequence = np.concatenate([pool.tokens[row, :length], query[row]])
        for position in range(3):
            logits = logits_at(sequence, length + position - 1)
            wanted = logits[query[row, position]] - jax.nn.logsumexp(logits)
            wanted = wanted if position < count[row] else 0
            assert_allclose(logp[row, position], wanted, **EXACT)


def test_what_a_probe_says_past_the_slots_is_nan():
    query, count = np.ones((ROWS, 3), np.int32), np.array([3, 1, 2, 3])
    length = np.array([SLOTS - 1, SLOTS - 1, SLOTS, SLOTS - 3], np.int32)
    logp, hidden = ask(PARAMS, replace(started(), length=jnp.asarray(length)), query, count)
    lost = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 0]], bool)
    assert_array_equal(np.isnan(logp), lost)
    assert_array_equal(np.isnan(hidden).all(axis=2), np.pad(lost, ((0, 0), (1, 0))))


@pytest.mark.thorough
def test_retired_rows_are_free_for_another_prompt():
    rows = np.array([False, True, False, True])
    pool = retire(replace(draw(started()), group=jnp.arange(ROWS)), rows)
    assert_array_equal(pool.status, [RUNNING, FREE, RUNNING, FREE])
    assert_array_equal(pool.group, [0, -1, 2, -1])
    for name in ("mask", *RECORD):
        assert not np.any(np.asarray(getattr(pool, name))[rows])
    tokens = np.asarray(started().tokens)[:, :WIDTH]
    fresh = give(PARAMS, pool, tokens, np.where(rows, PROMPT_LENGTH, 0))
    fresh, whole = draw(fresh), draw(started())
    for row in np.flatnonzero(rows):
        length = int(whole.length[row])
        assert_array_equal(fresh.tokens[row, :length], whole.tokens[row, :length])
        assert_allclose(fresh.logp[row], whole.logp[row], **EXACT)


def test_pruned_rows_keep_their_record_and_never_run():
    before = draw(started(), 3)
    pool = retire(before, np.array([True, False, False, True]), PRUNED)
    after = draw(pool, 3)
    assert_array_equal(after.status, [PRUNED, RUNNING, RUNNING, PRUNED])
    assert_array_equal(after.length, PROMPT_LENGTH + np.array([3, 6, 6, 3]))
    assert_array_equal(after.logp[0], before.logp[0])
    with pytest.raises(ValueError, match=r"status must be FREE \(0\) or PRUNED \(4\), got 3"):
        retire(pool, np.ones(ROWS, bool), FINISHED)


@pytest.mark.thorough
def test_running_rows_come_to_the_front_and_go_on_unchanged():
    status = jnp.array([FINISHED, RUNNING, BUDGET, RUNNING])
    pool = replace(draw(started(), 2), status=status)
    pool = replace(pool, limit=pool.limit.at[2].set(pool.length[2]))
    small, order = compact(pool, 2)
    assert_array_equal(order, [1, 3])
    assert small.tokens.shape == (2, SLOTS)
    small, whole = draw(small, 3), draw(pool, 3)
    for name in ("tokens", "length", "mask"):
        assert_array_equal(getattr(small, name), np.asarray(getattr(whole, name))[[1, 3]])
    assert_array_equal(compact(pool)[1], [1, 3, 0, 2])
    raised = replace(pool, limit=pool.limit + 1)
    assert_array_equal(compact(raised)[1], [1, 2, 3, 0])
    with pytest.raises(ValueError, match=r"size must be in 1 … 4, got 5"):
        compact(pool, 5)


@pytest.mark.thorough
def test_a_reset_row_is_a_fresh_one_of_the_same_trace():
    pool = draw(replace(started(), group=jnp.arange(ROWS), trace=jnp.arange(10, 14)))
    rows = np.array([True, False, True, False])
    tokens = np.random.default_rng(8).integers(1, VOCABULARY, (ROWS, WIDTH)).astype(np.int32)
    count = np.array([3, 2, 4, 1])
    anew = draw(begin_anew(PARAMS, pool, rows, tokens, count, key=keys(seed=9)), 2)
    fresh = draw(
        give(
            PARAMS,
            replace(
                truncate(pool, np.zeros(ROWS, int)),
                key=keys(seed=9),
                length=jnp.zeros(ROWS, jnp.int32),
                status=jnp.full(ROWS, FREE),
            ),
            tokens,
            count,
        ),
        2,
    )
    for row in np.flatnonzero(rows):
        length = count[row] + 2
        assert int(anew.length[row]) == length and int(anew.prompt_length[row]) == count[row]
        assert_array_equal(anew.tokens[row, :length], fresh.tokens[row, :length])
        assert_array_equal(np.flatnonzero(anew.mask[row]), np.arange(count[row], length))
    untouched = draw(pool, 2)
    for row in np.flatnonzero(~rows):
        assert_array_equal(anew.tokens[row], untouched.tokens[row])
    assert_array_equal(anew.trace, np.arange(10, 14))
    assert_array_equal(anew.group, np.arange(ROWS))
