"""The most probable tokens, recorded where a token was drawn, against full passes."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from devices import NEEDS_EIGHT_DEVICES
from numpy.testing import assert_allclose, assert_array_equal
from pool_rows import (
    EXACT,
    MODEL,
    PARAMS,
    PROMPT_LENGTH,
    PROMPTS,
    ROWS,
    STEPS,
    STOP,
    VOCABULARY,
    copy,
    cut_back,
    draw,
    keys,
    logits_at,
    run,
    started,
)

from rlvr_jax.parallel import make_mesh
from rlvr_jax.rollout import Prompts, Sampling, sample, to_rollouts, widen

TOP = 3
CUT = Sampling(temperature=0.7, top_k=2)


def recorded(pool, steps=STEPS):
    return run(PARAMS, pool, steps, CUT, (), record_top=TOP)


def assert_what_a_full_pass_says(pool, row, position):
    logits = np.asarray(logits_at(pool.tokens[row], position - 1)) / CUT.temperature
    logp = logits - np.log(np.sum(np.exp(logits)))
    ids = np.argsort(-logp)[:TOP]
    assert_array_equal(pool.topk_ids[row, position], ids)
    assert_allclose(pool.topk_logp[row, position], logp[ids], **EXACT)


@pytest.mark.thorough
def test_the_record_is_the_policy_s_before_any_cut():
    pool = recorded(started())
    for row, length in enumerate(PROMPT_LENGTH):
        for position in range(length, length + STEPS):
            assert_what_a_full_pass_says(pool, row, position)
    off = ~np.asarray(pool.mask)
    assert not np.any(np.asarray(pool.topk_logp)[off]) and not np.any(
        np.asarray(pool.topk_ids)[off]
    )
    assert_array_equal(pool.tokens, draw(started(), sampling=CUT).tokens)


@pytest.mark.thorough
def test_it_moves_with_its_row_and_is_cut_with_it():
    pool = recorded(started(), 4)
    source = np.array([2, 0, 0, 1])
    forked = copy(pool, source, PROMPT_LENGTH[source] + 2, keys())
    forked = cut_back(widen(recorded(forked, 3), 20), forked.length + 2)
    for row, length in enumerate(PROMPT_LENGTH[source]):
        for position in range(length, length + 4):
            assert_what_a_full_pass_says(forked, row, position)
        assert not np.any(forked.topk_logp[row, length + 4 :])
    rollouts = to_rollouts(forked, PROMPTS[source], STEPS, CUT)
    assert (
        rollouts.records["sampled_topk_logp"].shape
        == rollouts.records["sampled_topk_ids"].shape
        == (ROWS, STEPS, TOP)
    )
    first = forked.topk_logp[np.arange(ROWS), PROMPT_LENGTH[source]]
    assert_array_equal(rollouts.records["sampled_topk_logp"][:, 0], first)
    assert not np.any(rollouts.records["sampled_topk_logp"][:, 4:])


@pytest.mark.thorough
@NEEDS_EIGHT_DEVICES
@pytest.mark.parametrize("mesh, at_once", [(None, 5), ("data=4", None), ("data=2,tensor=2", None)])
def test_the_same_is_recorded_in_turn_and_over_meshes(mesh, at_once):
    def sampled(model, at_once=None):
        return sample(
            model,
            PARAMS,
            Prompts(
                PROMPTS, PROMPT_LENGTH, np.arange(ROWS, dtype=np.int32), np.zeros(ROWS, np.int32)
            ),
            jax.random.key(2),
            samples=3,
            response_tokens=STEPS,
            sampling=Sampling(),
            stop_tokens=(STOP,),
            at_once=at_once,
            record_top=TOP,
        )

    model = MODEL if mesh is None else replace(MODEL, mesh=make_mesh(mesh, jax.devices()[:4]))
    found, wanted = sampled(model, at_once), sampled(MODEL)
    assert_array_equal(found.records["sampled_topk_ids"], wanted.records["sampled_topk_ids"])
    assert_allclose(
        found.records["sampled_topk_logp"], wanted.records["sampled_topk_logp"], **EXACT
    )
    assert np.any(wanted.records["sampled_topk_logp"])


@pytest.mark.parametrize("number", [-1, VOCABULARY + 1])
def test_a_number_that_the_vocabulary_has_not_is_refused(number):
    with pytest.raises(ValueError, match=f"record_top must be in 0 … {VOCABULARY}, .* {number}"):
        run(PARAMS, started(), STEPS, CUT, (), record_top=number)


def test_another_number_than_before_is_refused():
    with pytest.raises(ValueError, match="record_top must be 3 as in the pool so far, got 2"):
        run(PARAMS, recorded(started(), 4), STEPS, CUT, (), record_top=2)
