"""Macro actions on short rows and on masks with holes."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.methods.credit.ma_rlhf import (
    last_token_weights,
    macro_advantages,
    macro_mean,
    ngram_macros,
    position_weights,
)
from rlvr_jax.objectives.advantages.returns import generalized_advantages

ATOL = 1e-14  # float64, sums of a few terms


MASK = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1],
        [1, 0, 1, 1, 0, 1, 1],
        [0, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ],
    bool,
)


REWARDS, VALUES = np.random.default_rng(0).normal(size=(2, *MASK.shape))


def test_ids_count_tokens_and_the_last_token_stands_alone():
    wanted = [
        [0, 0, 0, 1, 1, 1, 2],  # 3 divides 6: no empty macro before the last
        [0, -1, 0, 0, -1, 1, 2],
        [-1, -1, -1, 0, -1, -1, -1],
        [-1] * 7,
    ]
    np.testing.assert_array_equal(ngram_macros(jnp.asarray(MASK), 3), wanted)


def test_means_follow_the_weights():
    macro = ngram_macros(jnp.asarray(MASK), 3)
    values = jnp.asarray(np.where(MASK, VALUES, np.nan))
    first = VALUES[1, [0, 2, 3]]
    for weights, wanted in (
        (None, first.mean()),
        (last_token_weights, first[2]),
        (position_weights, np.average(first, weights=[1, 1 / 2, 1 / 3])),
    ):
        found = macro_mean(values, macro, *([weights] if weights else []))
        np.testing.assert_allclose(np.asarray(found)[1, [0, 2, 3]], wanted, atol=ATOL)
        assert not np.asarray(found)[~MASK].any()


@pytest.mark.thorough
def test_a_narrower_table_gives_the_same():
    macro = ngram_macros(jnp.asarray(MASK), 3)
    whole = partial(macro_advantages, REWARDS, VALUES, macro, 0.9, 0.8, weights=position_weights)
    np.testing.assert_array_equal(whole(most=3), whole())


def test_macros_of_one_token_are_tokens():
    mask = jnp.asarray(MASK)
    arguments = (jnp.asarray(REWARDS), jnp.asarray(VALUES))
    found = macro_advantages(*arguments, ngram_macros(mask, 1), 0.9, 0.8)
    wanted = generalized_advantages(*arguments, mask, 0.9, 0.8)
    np.testing.assert_allclose(found, wanted, atol=ATOL)


@pytest.mark.slow
def test_ma_rlhf_learns_from_answers_of_turns_by_another_methods_experience(tmp_path):
    world = "small_environments:in_turns"
    steps = run_of(tmp_path, "ma_rlhf", experience=world, task="training_runs:sums")
    assert_turns_were_learned_from(steps)
    assert max(training_runs.values(steps, "critic/gradient_norm")) > 0
