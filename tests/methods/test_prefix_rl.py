"""PrefixRL: hard prompts with part of a correct solution as beginning, together with plain ones."""

import numpy as np
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stages.choices.pairs import contrast_pairs, mixed_groups
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.prefix_rl import prefix_fraction

RATED = {"rated": 8, "rating_samples": 4, "fraction": 0.6}


def test_prefixes_are_context_and_their_lengths_stay():
    fractions = [prefix_fraction(3, number, 1, 0.4, 0.8) for number in range(50)]
    assert fractions == [prefix_fraction(3, number, 1, 0.4, 0.8) for number in range(50)]
    assert 0.4 <= min(fractions) < 0.5 and 0.7 < max(fractions) < 0.8
    prefixed = 0
    for collected, told, _ in walked("prefix_rl", 4, numpy_actor.NumpyActor(chance=0.3), **RATED):
        rollouts = collected.batch.rollouts
        given = (
            np.zeros_like(rollouts.mask)
            if "origin" not in rollouts.records
            else rollouts.records["origin"] == 3
        )
        assert not (rollouts.mask & given).any()
        for rows in collected.batch.groups:
            assert len({collected.batch.requests[row].view for row in rows}) == 1
        prefixed += told["prefixed_fraction"]
    assert 0 < prefixed < 4


def test_prompts_without_a_correct_response_before_training_are_used_from_the_second_step_on():
    steps = walked("prefix_rl", 6, numpy_actor.NumpyActor(chance=0.3), **RATED)
    rates = [state["begin_with_prefixes"].rate for _, _, state in steps]
    hard = {*np.flatnonzero(rates[0] == 0).tolist()}
    assert 0 < len(hard) < np.sum(~np.isnan(rates[0])) == RATED["rated"]
    assert all(np.array_equal(rates[0], rate, equal_nan=True) for rate in rates)
    first, *others = [
        {request.number for request in found.batch.requests if not request.rating}
        for found, _, _ in steps
    ]
    assert not first <= hard
    # The least sampled ones first, so that all have their turn.
    assert set.union(*others) == hard
    assert not any(request.view.fraction for request in steps[0][0].batch.requests)


def test_a_run_without_a_hard_prompt_stays_a_plain_one():
    steps = walked("prefix_rl", 3, numpy_actor.NumpyActor(chance=1.0), **RATED)
    assert [told["hard_prompts"] for _, told, _ in steps] == [0, 0, 0]
    assert sum(told["prefixed_fraction"] for _, told, _ in steps) == 0


def test_a_pair_is_a_right_row_and_one_of_the_commonest_wrong_answer():
    outcomes = np.array([[1, 0, np.nan], [1, 1, np.nan], [0, 0, 0], [np.nan, 1, 0]])
    assert mixed_groups(outcomes).tolist() == [True, False, False, True]
    (found,) = numpy_actor.walk(recipe("prefix_rl").experience, steps=1)
    batch = found[0].batch
    for pair in contrast_pairs(batch):
        rows = batch.groups[pair.group]
        assert pair.correct in rows and pair.incorrect in rows
        assert batch.rollouts.outcome[[pair.correct, pair.incorrect]].tolist() == [1, 0]
