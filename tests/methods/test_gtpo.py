"""Conflicts against a search that compares every pair of rollouts."""

import golden_vectors as golden
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.entropy.gtpo import find_conflicts

RANDOM = np.random.default_rng(11)
TOKENS = RANDOM.integers(0, 2, (12, 9))
MASK = RANDOM.random((12, 9)) < 0.8
MASK[3] = False
GROUP = np.array([5, 5, 9, 5, 5, 9, 9, 9, 5, 1, 1, 2])
SIGN = np.array([1, -1, 1, 1, 0, -1, -1, 1, -1, 1, 1, 1])


def search():
    """The unbroken stretches from both ends, rollout by rollout, token by token."""
    texts = [list(row[mask]) for row, mask in zip(TOKENS, MASK, strict=True)]

    def stretch(row, texts):
        others = [i for i in range(12) if GROUP[i] == GROUP[row]]
        for t, token in enumerate(texts[row]):
            same = {SIGN[i] for i in others if len(texts[i]) > t and texts[i][t] == token}
            if SIGN[row] == 0 or not {1, -1} <= same:
                return t
        return len(texts[row])

    backwards = [text[::-1] for text in texts]
    return [(stretch(row, texts), stretch(row, backwards)) for row in range(12)]


def found(sign):
    batch = golden.rollouts("b").replace(
        tokens=array(TOKENS, np.int32),
        mask=array(MASK, bool),
        group=array(GROUP, np.int32),
    )
    return find_conflicts(array(np.where(MASK, sign[:, None], 0), float), batch)


@pytest.mark.thorough
def test_stretches_are_those_of_a_search_over_pairs():
    (from_start, to_end), wanted = found(SIGN), search()
    assert max(sum(pair) for pair in wanted) > 2
    for row, (forward, backward) in enumerate(wanted):
        on_mask = np.flatnonzero(MASK[row])
        np.testing.assert_array_equal(np.flatnonzero(from_start[row]), on_mask[:forward])
        last = on_mask[len(on_mask) - backward :]
        np.testing.assert_array_equal(np.flatnonzero(to_end[row]), last)


def test_without_both_signs_there_is_no_conflict():
    for sign in (np.ones(12), np.zeros(12), np.where(np.arange(12) == 11, -1, 1)):
        from_start, to_end = found(sign)
        assert not from_start.any() and not to_end.any()
