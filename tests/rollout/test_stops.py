"""Texts that pause a row, against a search in what it writes without them."""

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

from rlvr_jax.rollout import (
    BUDGET,
    FINISHED,
    RUNNING,
    STOPPED,
    Sampling,
    compact,
    find_stops,
    resume,
    retire,
)

# Words of the policy's 13 tokens: no text of several words is one of other words.
WORDS = [f"<{letter}>" for letter in "abcdefghijklm"]
FREELY = draw(started())
DRAWN = np.stack([FREELY.tokens[r, n : n + STEPS] for r, n in enumerate(PROMPT_LENGTH)])


def until(texts, pool=None, steps=STEPS, stop_tokens=(), words=WORDS):
    pool = started() if pool is None else pool
    stops = find_stops(texts, [word.encode() for word in words])
    sampling = replace(PLAIN, stops=stops)
    return run(PARAMS, pool, steps, sampling, stop_tokens)


def searched(texts, words=WORDS):
    """Where each row of `DRAWN` ends and which text ends it, -1 if none."""
    found = np.full((ROWS, 2), (STEPS, -1))
    for row, tokens in enumerate(DRAWN.tolist()):
        for end in range(1, STEPS + 1):
            written = "".join(words[token] for token in tokens[:end])
            places = [(written.find(text) + len(text), n) for n, text in enumerate(texts)]
            fits = [(place, n) for place, n in places if place >= len(texts[n])]
            if fits:
                found[row] = end, min(fits)[1]
                break
    return found.T


def of(row, begin, end):
    return "".join(WORDS[token] for token in DRAWN[row, begin:end])


# In row 0 behind three tokens, in row 2 behind two; the second is the end of the first.
TEXTS = (of(0, 0, 3), of(0, 1, 3), of(2, 1, 2), of(3, 0, 5) + "<a>")


@pytest.mark.thorough
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[1:], (of(1, 0, 1),)])
def test_a_row_stops_at_the_first_text_it_writes_and_says_which(texts):
    pool = until(texts)
    length, which = searched(texts)
    assert np.any(which >= 0) and len(set(which)) > 1
    assert_array_equal(pool.length, PROMPT_LENGTH + length)
    assert_array_equal(pool.stop, which)
    assert_array_equal(pool.status, np.where(which >= 0, STOPPED, RUNNING))
    # the tokens and what is recorded of them are those that were drawn without
    assert_same_rows(replace(pool, status=FREELY.status), cut_back(FREELY, PROMPT_LENGTH + length))
    further = until(texts, pool)
    assert_array_equal(further.length[which >= 0], pool.length[which >= 0])


# Tokens of several characters: texts begin and end inside of them, and a token has all of one.
SPELLED = ["=", "!", "=!", "==", "!=", "a", "b=", "!!", "é", "=é!", "ab", "é=", "x"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("texts", "part"),
    [
        (("!",), STEPS),
        (("!",), 1),
        (("==", "a"), STEPS),
        (("!", "=!"), 2),
        (("!!", "=é"), STEPS),
        (("b=!", "é="), 1),
        (("é", "==!"), STEPS),
    ],
)
def test_a_text_is_found_in_whatever_tokens_and_calls_it_is_written(texts, part):
    length, which = searched(texts, SPELLED)
    pool = started()
    for _ in range(0, STEPS, part):
        pool = until(texts, pool, part, words=SPELLED)
    assert_array_equal(pool.length, PROMPT_LENGTH + length)
    assert_array_equal(pool.stop, which)
    assert_array_equal(pool.status, np.where(which >= 0, STOPPED, RUNNING))


def test_a_character_that_several_tokens_write_is_found_at_the_last_of_them():
    first, second = DRAWN[0, :2].tolist()
    assert first != second
    parts = [b"?"] * 13
    parts[first], parts[second] = "é".encode()[:1], "é".encode()[1:]
    stops = find_stops(("é",), parts)
    pool = run(PARAMS, started(), STEPS, replace(PLAIN, stops=stops), ())
    assert int(pool.length[0]) == PROMPT_LENGTH[0] + 2 and int(pool.stop[0]) == 0


def test_tokens_without_bytes_leave_a_text_as_it_is():
    middle = int(DRAWN[0, 1])
    words = [word if token != middle else "" for token, word in enumerate(WORDS)]
    text = "".join(words[token] for token in DRAWN[0, :3])
    assert int(until((text,), words=words).length[0]) == PROMPT_LENGTH[0] + 3


@pytest.mark.thorough
def test_a_text_may_begin_in_an_earlier_call_but_not_in_the_prompt():
    begun = draw(started(), 2)
    text = of(0, 0, 3)
    assert_array_equal(until((text,), begun, 1).stop, searched((text,))[1])
    last = int(FREELY.tokens[0, PROMPT_LENGTH[0] - 1])
    assert int(until((WORDS[last] + of(0, 0, 2),)).stop[0]) == -1


def test_a_text_may_begin_in_a_prompt_that_ends_with_the_beginning_of_a_response():
    last = int(FREELY.tokens[0, PROMPT_LENGTH[0] - 1])
    stops = find_stops((WORDS[last] + of(0, 0, 2),), [word.encode() for word in WORDS])
    state = np.zeros(ROWS, np.int32)
    state[0] = stops.after([last])
    sampling = replace(PLAIN, stops=stops)
    pool = run(PARAMS, started(), STEPS, sampling, (), stop_state=state)
    assert int(pool.length[0]) == PROMPT_LENGTH[0] + 2 and int(pool.stop[0]) == 0


@pytest.mark.thorough
def test_given_tokens_may_be_part_of_it():
    pool = draw(started(), 1)
    given, count = np.full((ROWS, WIDTH), 5, np.int32), np.array([2, 0, 0, 0])
    pool = give(PARAMS, pool, given, count)
    token = int(draw(pool, 1).tokens[0, PROMPT_LENGTH[0] + 3])
    assert int(until((2 * WORDS[5] + WORDS[token],), pool, 1).stop[0]) == 0
    # not by what is given alone
    assert int(until((2 * WORDS[5],), pool, 1).status[0]) == RUNNING


def test_a_resumed_row_goes_on_as_if_it_had_not_stopped():
    pool = until(TEXTS[:1])
    assert int(pool.status[0]) == STOPPED
    again = resume(pool, jnp.ones(ROWS, bool))
    assert_array_equal(again.stop, np.full(ROWS, -1))
    assert_array_equal(again.status, np.full(ROWS, RUNNING))
    length = int(FREELY.length[0])
    assert_array_equal(draw(again, 3).tokens[0, :length], FREELY.tokens[0, :length])
    assert int(resume(pool, jnp.zeros(ROWS, bool)).status[0]) == STOPPED


@pytest.mark.parametrize("how", ["given", "rolled back", "forked", "emptied"])
def test_what_changes_a_row_forgets_what_stopped_it(how):
    pool, only = until(TEXTS[:1]), np.arange(ROWS) == 0
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


def test_a_stop_token_wins_over_a_text_and_a_text_over_the_limit():
    text = of(0, 0, 3)
    finished = until((text,), stop_tokens=(int(DRAWN[0, 2]),))
    assert int(finished.status[0]) == FINISHED and int(finished.stop[0]) == -1
    limited = replace(started(), limit=jnp.asarray(PROMPT_LENGTH + 3))
    stopped = until((text,), limited)
    assert_array_equal(stopped.status, np.where(np.arange(ROWS) == 0, STOPPED, BUDGET))
    assert int(draw(resume(stopped, jnp.ones(ROWS, bool)), 1).status[0]) == BUDGET


@pytest.mark.parametrize("texts", [("a", ""), (), [5]])
def test_a_text_that_is_empty_is_refused(texts):
    with pytest.raises(ValueError, match=r"texts must be texts that are not empty, got"):
        find_stops(texts, [b"a"])


def test_texts_without_a_vocabulary_are_refused():
    with pytest.raises(ValueError, match=r"stops must be of find_stops, .* got \('a',\)"):
        Sampling(stops=("a",))


def test_equal_texts_of_equal_vocabularies_are_one_program():
    one, two = (find_stops(("ab",), [b"a", b"b"]) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert one != find_stops(("ab",), [b"b", b"a"]) and one != find_stops(("a",), [b"a", b"b"])
