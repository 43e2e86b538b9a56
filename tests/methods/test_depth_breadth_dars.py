"""More rows for some groups."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.depth_breadth_dars import (
    budget_for_hard,
    draw_more,
    extra_rollouts,
)


def walked(chain, **sizes):
    own = numpy_actor.setting(chain, **sizes)
    return [found for found, _, _ in numpy_actor.walk(chain, own=own)]


def test_hard_groups_grow_by_what_their_first_rows_say():
    chain = experience(stages=[draw_more(budget_for_hard(), most=4)])
    added = 0
    for found in walked(chain):
        batch, first = found.batch, found.seen[0]
        wanted = 4 + budget_for_hard()(first.outcomes(), 16)
        np.testing.assert_array_equal([len(rows) for rows in batch.groups], wanted)
        added += int((wanted - 4).sum())
        for before, rows in zip(first.groups, batch.groups, strict=True):
            tokens = batch.rollouts.tokens[rows]
            np.testing.assert_array_equal(tokens[:4], first.rollouts.tokens[before])
            assert {batch.requests[row].number for row in rows} == {
                first.requests[before[0]].number
            }
            assert len({float(x) for x in batch.rollouts.entropy[rows, 0]}) == len(rows)
        assert found.metrics["extra_rows"] == (len(batch) - len(first)) / len(first)
    assert added > 0


def test_the_limit_holds_whatever_the_budget_says():
    chain = experience(stages=[draw_more(lambda outcomes, most: np.full(4, 99), most=1.5)])
    for found in walked(chain):
        assert [len(rows) for rows in found.batch.groups] == [6] * 4


def test_a_budget_of_nothing_draws_nothing():
    chain = experience(stages=[draw_more(lambda outcomes, most: np.zeros(4, int), most=2)])
    for found in walked(chain):
        assert len(found.seen) == 1 and len(found.batch) == 16


def test_harder_prompts_get_more_by_hardness():
    outcomes = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [np.nan, 0, 0, 0]])
    equal, hardness = (budget_for_hard(flag)(outcomes, 32) for flag in (False, True))
    assert np.all(hardness[[0, 1, 3]] > equal[[0, 1, 3]])
    assert equal[2] == hardness[2] == 0 and equal[3] == equal[0]


def test_dars_trains_on_mixed_groups_of_all_their_rows():
    grown = 0
    for found in walked(recipe("depth_breadth_dars").experience):
        batch = found.batch
        for rows in batch.groups:
            outcome = batch.rollouts.outcome[rows]
            assert batch.rollouts.mask[rows].any() == (outcome.min() < outcome.max())
            grown += len(rows) > 4 and bool(batch.rollouts.mask[rows].any())
    assert grown > 0


def test_fewer_rows_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"draw_more: most must be at least 1, got 0\.5"):
        draw_more(budget_for_hard(), most=0.5)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 8, 60])
def test_counts_agree_with_fractions(size):
    for by_hardness in (False, True):
        found = extra_rollouts(np.arange(size + 1), size, 10**6, by_hardness=by_hardness)
        for correct in range(size + 1):
            u = Fraction(correct, size) if correct else Fraction(1, 2 * size)
            spread = 2 * u * (1 - u)
            wanted = Fraction(size, 2) * (2 * (1 - u) if by_hardness else 1)
            more = 0 if u >= Fraction(1, 2) else math.ceil((wanted - size * spread) / spread)
            assert found[correct] == more


def test_the_limit_counts_all_rollouts():
    assert extra_rollouts(0, 8, 32) == 24
    assert extra_rollouts(0, 8, 8) == 0


def test_a_group_above_the_limit_is_refused():
    with pytest.raises(ValueError, match=r"group_size must be in \[1, max_rollouts 4\], got 8"):
        extra_rollouts(0, 8, 4)
