"""Which answers of a group are kept, of more that were drawn."""

import numpy as np
import numpy_actor
import pytest

from rlvr_jax.experience import experience, select_cleanest
from rlvr_jax.experience.stages.choices.cleanest import cleanest_rows, missed_rewards, tag_penalty


def counts(wrong, right, number=16, least=2):
    """How many wrong and right ones of a group are kept."""
    answers = np.arange(wrong + right) >= wrong
    kept = cleanest_rows(answers, np.zeros(len(answers)), number, least, least)
    return int(np.sum(kept & ~answers)), int(np.sum(kept & answers))


@pytest.mark.parametrize(
    ("wrong", "kept"),
    [(1, 1), (2, 2), (3, 2), (5, 2), (7, 4), (16, 8), (25, 12), (27, 14), (29, 14), (31, 15)],
)
def test_half_of_each_kind_is_kept_rounded_half_to_even_and_two_at_least(wrong, kept):
    assert counts(wrong, 32 - wrong) == (kept, 16 - kept)


def test_every_size_keeps_as_many_as_asked():
    for number in range(2, 12):
        for drawn in (1, 2, 3):
            for wrong in range(1, number * drawn):
                found = counts(wrong, number * drawn - wrong, number, least=1)
                assert sum(found) == number and min(found) >= 1


def test_right_ones_are_the_cleanest_and_wrong_ones_the_first():
    right = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    penalty = np.array([0.5, 0.0, 0.5, 0.2, 9, 0, 0, 0])
    kept = cleanest_rows(right, penalty, 4, 1, 1)
    np.testing.assert_array_equal(np.flatnonzero(kept), [1, 3, 4, 5])
    # Of equal ones the earlier.
    tied = cleanest_rows(right, np.full(8, 0.5), 4, 1, 1)
    np.testing.assert_array_equal(np.flatnonzero(tied), [0, 1, 4, 5])


def test_tags_are_tidy_if_there_is_one_pair():
    texts = ["<answer>1</answer>", "1", "<answer>1", "<answer>1</answer> <answer>2</answer>", "1"]
    np.testing.assert_array_equal(tag_penalty(texts, [1, 1, 1, 4, 0]), [0, 1, 1, 0.25, 1])
    many = "<answer></answer>" * 4
    np.testing.assert_array_equal(tag_penalty([many, many], [1, 0]), [1, 1])


def test_groups_of_equal_outcomes_teach_nothing_and_the_others_are_cleaner():
    chain = experience(stages=[select_cleanest(least_wrong=1, least_right=1)])
    own = numpy_actor.setting(chain)
    for collected, _, _ in numpy_actor.walk(chain, own=own):
        drawn, batch = collected.seen[0], collected.batch
        assert len(drawn) == 2 * len(batch)
        outcome = drawn.outcomes()
        mixed = outcome.min(axis=1) < outcome.max(axis=1)
        trained = [bool(batch.rollouts.mask[rows].any()) for rows in batch.groups]
        np.testing.assert_array_equal(trained, mixed)
        assert collected.metrics["dropped_groups"] == 1 - mixed.mean()
        for before, after in zip(drawn.groups, batch.groups, strict=True):
            penalty = [
                missed_rewards(one.take(rows[one.rollouts.outcome[rows] > 0]), own.task)
                for one, rows in ((drawn, before), (batch, after))
            ]
            if len(penalty[1]):
                assert penalty[1].max() <= np.sort(penalty[0])[len(penalty[1]) - 1]


def test_more_minima_than_rows_are_refused():
    chain = experience(stages=[select_cleanest(least_wrong=3, least_right=2)])
    with pytest.raises(ValueError, match="must be at most 4 together"):
        numpy_actor.walk(chain, steps=1)
