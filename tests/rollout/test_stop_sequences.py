"""Sequences of tokens that pause a row, against a search in what it draws without them."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pool_rows import (
    PARAMS,
    PLAIN,
    PROMPT_LENGTH,
    ROWS,
    STEPS,
    WIDTH,
    assert_same_rows,
    copy,
    cut_back,
    draw,
    give,
    keys,
    run,
    started,
)

from rlvr_jax.rollout import BUDGET, FINISHED, RUNNING, STOPPED, compact, resume, retire

FREELY = draw(started())
DRAWN = np.stack([FREELY.tokens[r, n : n + STEPS] for r, n in enumerate(PROMPT_LENGTH)])


def until(sequences, pool=None, steps=STEPS, stop_tokens=()):
    pool = started() if pool is None else pool
    sampling = replace(PLAIN, stop_sequences=sequences)
    return run(PARAMS, pool, steps, sampling, stop_tokens, 0)


def searched(sequences):
    """Where each row of `DRAWN` ends and which sequence ends it, -1 if none."""
    found = np.full((ROWS, 2), (STEPS, -1))
    for row, tokens in enumerate(DRAWN.tolist()):
        for end in range(1, STEPS + 1):
            fits = [tokens[:end][-len(s) :] == list(s) for s in sequences]
            if any(fits):
                found[row] = end, fits.index(True)
                break
    return found.T


def of(row, begin, end):
    return tuple(DRAWN[row, begin:end].tolist())


# In row 0 behind three tokens, in row 2 behind two; the second is the end of the first.
SEQUENCES = (of(0, 0, 3), of(0, 1, 3), of(2, 1, 2), (*of(3, 0, 5), 0))


@pytest.mark.parametrize("sequences", [SEQUENCES, SEQUENCES[1:], (of(1, 0, 1),)])
def test_a_row_stops_behind_the_first_sequence_it_draws_and_says_which(sequences):
    pool = until(sequences)
    length, which = searched(sequences)
    assert np.any(which >= 0) and len(set(which)) > 1
    assert_array_equal(pool.length, PROMPT_LENGTH + length)
    assert_array_equal(pool.stop, which)
    assert_array_equal(pool.status, np.where(which >= 0, STOPPED, RUNNING))
    # the tokens and what is recorded of them are those that were drawn without
    assert_same_rows(replace(pool, status=FREELY.status), cut_back(FREELY, PROMPT_LENGTH + length))
    further = until(sequences, pool)
    assert_array_equal(further.length[which >= 0], pool.length[which >= 0])


def test_a_sequence_may_begin_in_an_earlier_call_but_not_in_the_prompt():
    begun = draw(started(), 2)
    sequence = of(0, 0, 3)
    assert_array_equal(until((sequence,), begun, 1).stop, searched((sequence,))[1])
    last = int(FREELY.tokens[0, PROMPT_LENGTH[0] - 1])
    over_the_border = (last, *of(0, 0, 2))
    assert int(until((over_the_border,)).stop[0]) == -1


def test_given_tokens_may_be_part_of_it():
    pool = draw(started(), 1)
    given, count = np.full((ROWS, WIDTH), 5, np.int32), np.array([2, 0, 0, 0])
    pool = give(PARAMS, pool, given, count)
    token = int(draw(pool, 1).tokens[0, PROMPT_LENGTH[0] + 3])
    assert int(until(((5, 5, token),), pool, 1).stop[0]) == 0
    # not by what is given alone
    assert int(until(((5, 5),), pool, 1).status[0]) == RUNNING


def test_a_resumed_row_goes_on_as_if_it_had_not_stopped():
    pool = until(SEQUENCES[:1])
    assert int(pool.status[0]) == STOPPED
    again = resume(pool, jnp.ones(ROWS, bool))
    assert_array_equal(again.stop, np.full(ROWS, -1))
    assert_array_equal(again.status, np.full(ROWS, RUNNING))
    length = int(FREELY.length[0])
    assert_array_equal(draw(again, 3).tokens[0, :length], FREELY.tokens[0, :length])
    assert int(resume(pool, jnp.zeros(ROWS, bool)).status[0]) == STOPPED


@pytest.mark.parametrize("how", ["given", "rolled back", "forked", "emptied"])
def test_what_changes_a_row_forgets_what_stopped_it(how):
    pool, only = until(SEQUENCES[:1]), np.arange(ROWS) == 0
    if how == "given":
        changed = give(PARAMS, pool, np.ones((ROWS, WIDTH), np.int32), only.astype(np.int32))
    elif how == "rolled back":
        changed = cut_back(pool, pool.length - only.astype(np.int32))
    elif how == "forked":
        changed = copy(pool, np.zeros(ROWS, np.int32), np.full(ROWS, PROMPT_LENGTH[0]), keys())
    else:
        changed = retire(pool, only)
    assert int(pool.stop[0]) == 0 and int(changed.stop[0]) == -1
    assert int(changed.status[0]) != STOPPED


def test_stopped_rows_make_room_for_those_that_run():
    _, order = compact(until((of(0, 0, 2),)))
    assert int(order[-1]) == 0


def test_a_stop_token_wins_over_a_sequence_and_a_sequence_over_the_limit():
    sequence = of(0, 0, 3)
    finished = until((sequence,), stop_tokens=(sequence[-1],))
    assert int(finished.status[0]) == FINISHED and int(finished.stop[0]) == -1
    limited = replace(started(), limit=jnp.asarray(PROMPT_LENGTH + 3))
    stopped = until((sequence,), limited)
    assert_array_equal(stopped.status, np.where(np.arange(ROWS) == 0, STOPPED, BUDGET))
    assert int(draw(resume(stopped, jnp.ones(ROWS, bool)), 1).status[0]) == BUDGET


@pytest.mark.parametrize("sequences", [((1, 2), ()), ["</tool>"], [[0.5]]])
def test_a_sequence_without_tokens_is_refused(sequences):
    with pytest.raises(
        ValueError, match=r"stop_sequences must be sequences of at least one token id each, got"
    ):
        until(sequences)
