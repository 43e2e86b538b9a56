"""The pool's primitives: any order of them that describes the same rows gives the same rows."""

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
    PLAIN,
    PROMPT_LENGTH,
    PROMPTS,
    RECORD,
    ROWS,
    SLOTS,
    STEPS,
    VOCABULARY,
    WIDTH,
    assert_same_rows,
    copy,
    cut_back,
    draw,
    give,
    keys,
    logits_at,
    started,
    to_logits,
)

from rlvr_jax.rollout import (
    BUDGET,
    FINISHED,
    FREE,
    PRUNED,
    RUNNING,
    Processor,
    Sampling,
    compact,
    empty,
    retire,
    to_rollouts,
    widen,
)
from rlvr_jax.rollout.distribution import _invert, chosen, tiled


def test_an_empty_pool_is_free_and_stays_so():
    pool = empty(MODEL, ROWS, SLOTS)
    assert_array_equal(pool.status, np.full(ROWS, FREE))
    assert_same_rows(draw(pool), pool)


def test_a_prompt_starts_a_row_and_is_not_sampled():
    pool = started()
    assert_array_equal(pool.status, np.full(ROWS, RUNNING))
    assert_array_equal(pool.length, PROMPT_LENGTH)
    assert_array_equal(pool.prompt_length, PROMPT_LENGTH)
    assert not np.any(pool.mask)
    for row, length in enumerate(PROMPT_LENGTH):
        assert_array_equal(pool.tokens[row, :length], PROMPTS[row, :length])


@pytest.mark.parametrize("first, second", [(2, 4), (4, 2)])
def test_drawing_in_two_calls_is_drawing_in_one(first, second):
    assert_same_rows(draw(draw(started(), first), second), draw(started()))


def test_what_is_recorded_is_what_a_full_pass_says():
    pool = draw(started())
    for row in range(ROWS):
        logits = np.asarray(to_logits(PARAMS, pool.tokens[row : row + 1])[0])
        logp = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
        for position in range(PROMPT_LENGTH[row], pool.length[row]):
            before = logp[position - 1]
            assert_allclose(pool.logp[row, position], before[pool.tokens[row, position]], **EXACT)
            entropy = -np.sum(np.exp(before) * before)
            assert_allclose(pool.entropy[row, position], entropy, **EXACT)


def test_a_fork_goes_on_as_if_freshly_begun():
    pool = draw(started())
    source, cut = np.array([1, 1, 0, 3]), np.array([4, 7, 5, 1])
    forked = draw(copy(pool, source, cut, keys(seed=6)), sampling=GREEDY)
    tokens = np.asarray(pool.tokens)[source][:, :7]
    fresh = draw(started(tokens, cut), sampling=GREEDY)
    for row in range(ROWS):
        length = int(fresh.length[row])
        assert length == cut[row] + STEPS
        assert_array_equal(forked.tokens[row, :length], fresh.tokens[row, :length])
    assert_array_equal(forked.parent, source)
    assert_array_equal(forked.branch_position, cut)
    assert_array_equal(forked.prompt_length, PROMPT_LENGTH[source])


def test_forks_with_keys_of_their_own_differ_and_with_one_key_agree():
    pool = started()
    source, cut = np.zeros(ROWS, np.int32), np.full(ROWS, PROMPT_LENGTH[0])
    key = keys()[np.array([0, 0, 1, 2])]
    forked = draw(copy(pool, source, cut, key))
    rows = [tuple(row) for row in np.asarray(forked.tokens[:, : PROMPT_LENGTH[0] + STEPS])]
    assert rows[0] == rows[1]
    assert len(set(rows)) == 3


def test_a_fork_may_change_the_number_of_rows():
    forked = copy(started(), np.array([2, 2]), np.array([3, 2]), keys(2))
    assert forked.tokens.shape == (2, SLOTS)
    assert forked.caches[0].keys.shape[0] == 2
    assert_array_equal(forked.length, [3, 2])
    assert_array_equal(forked.tokens[:, :2], np.tile(PROMPTS[2, :2], (2, 1)))


def test_a_pool_that_is_widened_goes_on_as_one_that_was_wide():
    narrow = replace(empty(MODEL, ROWS, WIDTH), key=keys())
    pool = widen(give(PARAMS, narrow, PROMPTS, PROMPT_LENGTH), SLOTS)
    assert_array_equal(pool.limit, np.full(ROWS, WIDTH))
    pool = replace(pool, limit=np.full(ROWS, SLOTS, np.int32))
    assert_same_rows(draw(pool), draw(started()))


def test_rows_that_share_the_caches_of_prompts_are_not_moved():
    pool = started()
    shared = MODEL.shared_caches(pool.caches, pool.prompt_length, STEPS)
    pool = replace(pool, caches=shared)
    refused = "{}: each row must have its own cache, got rows that share the cache of a prompt"
    with pytest.raises(ValueError, match=refused.format("fork")):
        copy(pool, np.arange(ROWS), PROMPT_LENGTH, keys())
    with pytest.raises(ValueError, match=refused.format("compact")):
        compact(pool)
    with pytest.raises(ValueError, match=refused.format("widen")):
        widen(pool, SLOTS)
    with pytest.raises(ValueError, match=refused.format("prefill")):
        give(PARAMS, pool, PROMPTS, PROMPT_LENGTH)
    assert_same_rows(draw(pool), draw(started()))


def test_a_pool_cannot_be_narrowed():
    with pytest.raises(ValueError, match=f"slots must be at least the {SLOTS} of the pool, got 3"):
        widen(started(), 3)


@pytest.mark.parametrize("pieces", [(1, 3), (2, 2), (1, 1, 2)])
def test_a_prompt_may_come_in_pieces(pieces):
    pool, seen = replace(empty(MODEL, ROWS, SLOTS), key=keys()), 0
    for piece in pieces:
        count = np.clip(PROMPT_LENGTH - seen, 0, piece)
        # Padded to one width, so that all pieces share one program.
        part = np.pad(PROMPTS[:, seen : seen + piece], ((0, 0), (0, WIDTH - piece)))
        pool = give(PARAMS, pool, part, count)
        seen += piece
    whole = replace(started(), prompt_length=pool.prompt_length)
    assert_same_rows(draw(pool), draw(whole))


def test_given_tokens_between_drawn_ones_count_as_context_and_not_as_samples():
    pool = draw(started(), 2)
    given = np.random.default_rng(3).integers(0, VOCABULARY, (ROWS, WIDTH)).astype(np.int32)
    count = np.array([3, 0, 4, 1])
    pool = draw(give(PARAMS, pool, given, count), 4)
    assert_array_equal(pool.length, PROMPT_LENGTH + count + 6)
    for row in range(ROWS):
        tokens, length = pool.tokens[row], int(pool.length[row])
        begin = PROMPT_LENGTH[row] + 2
        expected = [*range(PROMPT_LENGTH[row], begin), *range(begin + count[row], length)]
        assert_array_equal(np.flatnonzero(pool.mask[row]), expected)
        assert not np.any(np.asarray(pool.logp[row])[~np.asarray(pool.mask[row])])
        last = logits_at(tokens, length - 2)
        logp = last[tokens[length - 1]] - jax.nn.logsumexp(last)
        assert_allclose(pool.logp[row, length - 1], logp, **EXACT)


def test_permuted_rows_give_permuted_results():
    order = np.array([2, 0, 3, 1])
    straight = draw(started())
    permuted = replace(empty(MODEL, ROWS, SLOTS), key=keys()[order])
    permuted = draw(give(PARAMS, permuted, PROMPTS[order], PROMPT_LENGTH[order]))
    for name in ("tokens", "length", "mask", "status"):
        assert_array_equal(getattr(permuted, name), getattr(straight, name)[order])
    for name in RECORD:
        assert_allclose(getattr(permuted, name), getattr(straight, name)[order], **EXACT)


# Leaves the logits as they are; its carry counts the tokens that a row has drawn.
COUNTING = Sampling(
    processor=Processor(
        lambda rows: jnp.zeros(rows, jnp.int32), lambda logits, carry, context: (logits, carry + 1)
    )
)


def test_a_processor_that_leaves_the_logits_changes_nothing():
    pool = draw(started(), sampling=COUNTING)
    assert_allclose(pool.behaviour_logp, pool.logp, **EXACT)
    assert_same_rows(pool, draw(started()))


def test_rolling_back_is_never_having_gone_further():
    gone = draw(started())
    back = cut_back(gone, PROMPT_LENGTH + 2)
    expected = draw(started(), 2)
    assert_same_rows(back, expected)
    assert_same_rows(draw(back, 4), gone)


def test_rolling_back_lets_no_row_grow():
    pool = started()
    assert_same_rows(cut_back(pool, PROMPT_LENGTH + 3), pool)


def test_rows_that_had_stopped_run_again_when_rolled_back():
    pool = draw(replace(started(), limit=jnp.asarray(PROMPT_LENGTH + 3)))
    assert_array_equal(pool.status, np.full(ROWS, BUDGET))
    cut = PROMPT_LENGTH + np.array([1, 3, 2, 9], np.int32)
    back = cut_back(pool, cut)
    assert_array_equal(back.status, [RUNNING, BUDGET, RUNNING, BUDGET])


def test_a_stop_token_finishes_a_row_and_it_never_changes_again():
    free = draw(started())
    # what row 0 draws third; whoever draws it stops
    stop = int(free.tokens[0, 6])
    pool = draw(started(), stop_tokens=(stop,))
    for row in range(ROWS):
        begin = PROMPT_LENGTH[row]
        sampled = np.asarray(free.tokens[row, begin : begin + STEPS])
        hits = np.flatnonzero(sampled == stop)
        length = begin + (hits[0] + 1 if len(hits) else STEPS)
        assert int(pool.length[row]) == length
        assert pool.status[row] == (FINISHED if len(hits) else RUNNING)
        assert_array_equal(pool.tokens[row, :length], free.tokens[row, :length])
    finished = np.asarray(pool.status) == FINISHED
    assert finished[0]
    further = draw(pool, stop_tokens=(stop,))
    for name in ("tokens", "length", "mask", "status", *RECORD):
        before, after = getattr(pool, name), getattr(further, name)
        assert_array_equal(after[finished], before[finished])
    for before, after in zip(pool.caches, further.caches, strict=True):
        assert_array_equal(after.keys[finished], before.keys[finished])


def test_a_limit_pauses_a_row_and_more_of_it_lets_it_go_on():
    limit = PROMPT_LENGTH + np.array([1, 6, 3, 2], np.int32)
    paused = draw(replace(started(), limit=jnp.asarray(limit)))
    assert_array_equal(paused.length, limit)
    assert_array_equal(paused.status, np.full(ROWS, BUDGET))
    further, whole = draw(replace(paused, limit=jnp.full(ROWS, SLOTS, jnp.int32))), draw(started())
    assert_array_equal(further.length, limit + STEPS)
    for row, length in enumerate(PROMPT_LENGTH + STEPS):
        assert_array_equal(further.tokens[row, :length], whole.tokens[row, :length])


def test_a_row_that_is_at_its_limit_draws_nothing():
    limit = jnp.asarray(PROMPT_LENGTH + np.array([0, 2, 0, 1], np.int32))
    pool = draw(replace(started(), limit=limit))
    assert_array_equal(pool.length, limit)
    assert_array_equal(pool.status, np.full(ROWS, BUDGET))


def test_the_mask_counts_what_was_drawn_over_any_sequence_of_primitives():
    pool = draw(started(), 4)
    count = np.array([0, 2, 1, 3])
    pool = draw(give(PARAMS, pool, PROMPTS, count), 2)
    # four drawn, the given ones, two drawn; the cut falls behind 0, 2, 1 and 1 of the given ones
    source = np.array([0, 1, 2, 3])
    cut = PROMPT_LENGTH + np.array([3, 6, 6, 5])
    pool = copy(pool, source, cut, keys(seed=8))
    assert_array_equal(np.sum(pool.mask, axis=1), [3, 4, 5, 4])
    pool = draw(cut_back(pool, pool.length - np.array([0, 0, 2, 0], np.int32)), 2)
    assert_array_equal(np.sum(pool.mask, axis=1), [5, 6, 6, 6])
    for name in RECORD:
        assert not np.any(np.asarray(getattr(pool, name))[~np.asarray(pool.mask)])


def test_a_carry_moves_with_its_row_and_rests_when_the_row_does():
    limit = jnp.asarray(PROMPT_LENGTH + np.array([1, 6, 3, 2], np.int32))
    pool = draw(replace(started(), limit=limit), sampling=COUNTING)
    assert_array_equal(pool.carry[0], [1, 6, 3, 2])
    source = np.array([3, 1, 1, 0])
    forked = copy(pool, source, PROMPT_LENGTH[source] + 1, keys())
    assert_array_equal(forked.carry[0], [2, 6, 6, 1])


def test_the_carry_of_an_emptied_row_begins_anew():
    pool, rows = draw(started(), sampling=COUNTING), np.array([True, False, False, True])
    pool = give(PARAMS, retire(pool, rows), PROMPTS, np.where(rows, PROMPT_LENGTH, 0))
    pool = draw(pool, sampling=COUNTING)
    assert_array_equal(pool.carry[0], [6, 12, 12, 6])
    # once: what is left of the slots is drawn behind it
    assert_array_equal(draw(pool, sampling=COUNTING).carry[0], [12, 14, 13, 12])


def test_the_version_of_the_weights_is_recorded_with_each_token():
    pool = draw(draw(started(), 2, weight_version=3), 4, weight_version=7)
    version = np.asarray(pool.version)
    for row, begin in enumerate(PROMPT_LENGTH):
        assert_array_equal(version[row, begin : begin + 6], [3, 3, 7, 7, 7, 7])
    assert not np.any(version[~np.asarray(pool.mask)])


def test_the_rollouts_of_a_pool_say_where_they_branched_and_what_ended_them():
    pool = draw(started(), 2, weight_version=3)
    rollouts = to_rollouts(pool, PROMPTS, STEPS, PLAIN)
    assert_array_equal(rollouts.branch_position, np.full(ROWS, -1))
    assert_array_equal(rollouts.weight_version, np.full(ROWS, 3))
    source, branch = np.array([0, 1, 1, 3]), np.array([2, 0, 1, 1], np.int32)
    pool = copy(pool, source, PROMPT_LENGTH[source] + branch, keys())
    # the first row has no room for more
    pool = draw(replace(pool, limit=pool.limit.at[0].set(pool.length[0])), 2, weight_version=7)
    pool = replace(pool, status=jnp.array([FINISHED, BUDGET, RUNNING, PRUNED], jnp.int32))
    rollouts = to_rollouts(pool, PROMPTS[source], STEPS, PLAIN)
    assert_array_equal(rollouts.parent, source)
    assert_array_equal(rollouts.branch_position, branch)
    assert_array_equal(rollouts.weight_version, [3, 7, 7, 7])
    assert_array_equal(rollouts.truncated, [False, True, True, True])


def test_rollouts_say_which_version_drew_each_token_and_which_trace_a_row_is_of():
    pool = replace(started(), trace=jnp.array([5, -1, 5, 2], jnp.int32))
    pool = draw(draw(pool, 2, weight_version=3), 3, weight_version=7)
    rollouts = to_rollouts(pool, PROMPTS, STEPS, PLAIN)
    assert_array_equal(rollouts.records["trace"], [5, -1, 5, 2])
    assert_array_equal(rollouts.records["version"], np.tile([3, 3, 7, 7, 7, 0], (ROWS, 1)))


def test_a_response_that_is_cut_is_truncated():
    pool = draw(draw(started(), 2, weight_version=3), 1, weight_version=7)
    pool = replace(pool, status=jnp.full(ROWS, FINISHED, jnp.int32))
    whole, part = (to_rollouts(pool, PROMPTS, count, PLAIN) for count in (3, 2))
    assert_array_equal(whole.length, np.full(ROWS, 3))
    assert not np.any(whole.truncated)
    assert_array_equal(part.length, np.full(ROWS, 2))
    assert np.all(part.truncated)
    assert_array_equal(part.weight_version, np.full(ROWS, 3))
    assert_array_equal(part.tokens, whole.tokens[:, :2])


# The draw itself.


def test_the_middle_of_a_token_s_share_of_the_uniforms_draws_it():
    # Tokens rarer than one float32 uniform can say, and a last tile that is not full.
    vocabulary, tile = 100_003, 512
    random = np.random.default_rng(0)
    logits = random.normal(0, 2, vocabulary).astype(np.float32)
    mass = np.exp(logits.astype(np.float64))
    bounds = np.concatenate([[0], np.cumsum(np.add.reduceat(mass, range(0, vocabulary, tile)))])
    inside = mass / np.repeat(np.diff(bounds), tile)[:vocabulary]
    rare = np.flatnonzero((mass < 2.0**-25 * mass.sum()) & (inside > 2.0**-19))
    wanted = np.concatenate([random.choice(rare, 40), random.integers(0, vocabulary, 23)])
    wanted = np.append(wanted[inside[wanted] > 2.0**-19], vocabulary - 1)
    uniform = np.zeros((len(wanted), 2), np.float32)
    for row, token in enumerate(wanted):
        place = token // tile
        before = np.sum(inside[place * tile : token])
        uniform[row] = before + inside[token] / 2, np.mean(bounds[place : place + 2]) / bounds[-1]
    tiles, sums = jax.jit(tiled)(jnp.broadcast_to(logits, (len(wanted), vocabulary)))
    token, logp = jax.jit(chosen)(tiles, sums, uniform)
    assert_array_equal(token, wanted)
    # float32 sums of 100 003 terms, added in tiles
    assert_allclose(logp, np.log(mass / mass.sum())[wanted], atol=1e-5, rtol=0)


def test_an_entry_without_mass_is_never_drawn():
    # Half of the entries have no mass, and the uniforms are every bound between two entries: where
    # a parallel sum rises by rounding alone, one of them falls into the gap.
    random = np.random.default_rng(0)
    mass = random.exponential(size=512).astype(np.float32)
    mass[random.permutation(512)[:256]] = 0
    cumulative = jnp.cumsum(jnp.asarray(mass))
    bounds = np.asarray(cumulative / cumulative[-1])
    uniform = np.concatenate([bounds, np.nextafter(bounds, 0), np.nextafter(bounds, 1), [0.0]])
    uniform = uniform[uniform < 1].astype(np.float32)
    entry = jax.jit(_invert)(jnp.broadcast_to(mass, (len(uniform), 512)), uniform)
    assert np.all(mass[entry] > 0)


@pytest.mark.parametrize("uniform", [0.0, 1 - 2.0**-24])
def test_the_ends_of_the_uniforms_draw_the_first_and_the_last_entry_with_mass(uniform):
    mass = jnp.asarray([[0.0, 0.3, 0.0, 0.7, 0.0, 0.0]], jnp.float32)
    assert _invert(mass, jnp.asarray([uniform], jnp.float32))[0] == (1 if uniform == 0 else 3)
