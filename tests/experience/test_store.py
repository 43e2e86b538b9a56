"""A ring of rows: what is kept, what is lost, and what is taken."""

import numpy as np
import pytest

from rlvr_jax.experience.store import empty_store, oldest, pop_oldest, push, taken, uniform_places


def filled(*pushes, capacity=5):
    store = empty_store(capacity, number=((), np.int32))
    for step, numbers in enumerate(pushes):
        store = push(store, {"number": np.array(numbers, int)}, step)
    return store


def numbers(store, places):
    return taken(store, places)["number"].tolist()


@pytest.mark.parametrize(
    ("pushes", "kept", "steps"),
    [
        (([1, 2, 3], [4, 5, 6], [7]), [3, 4, 5, 6, 7], [0, 1, 1, 1, 2]),
        ((range(13),), [8, 9, 10, 11, 12], [0] * 5),
    ],
    ids=["over several pushes", "of one push"],
)
def test_the_newest_rows_take_the_places_of_the_oldest(pushes, kept, steps):
    store = filled(*pushes)
    assert numbers(store, oldest(store)) == kept
    assert store.step[oldest(store)].tolist() == steps


def test_first_in_first_out_over_the_end_of_the_ring():
    store, random = filled([1, 2, 3]), np.random.default_rng(0)
    wanted, found, number = [1, 2, 3], [], 4
    for step in range(40):
        new = list(range(number, number + int(random.integers(0, 3))))
        number += len(new)
        store = push(store, {"number": np.array(new, int)}, step)
        wanted += new
        rows, store = pop_oldest(store, int(random.integers(1, 4)))
        found += rows["number"].tolist()
        assert found + numbers(store, oldest(store)) == wanted


def test_pushing_nothing_and_taking_from_nothing():
    store = filled([])
    assert store.held == 0
    rows, store = pop_oldest(store, 3)
    assert not len(rows["number"]) and store.held == 0


def test_uniform_places_are_each_row_once():
    store = filled([1, 2, 3], [4])
    found = numbers(store, uniform_places(store, 9, np.random.default_rng(0)))
    assert sorted(found) == [1, 2, 3, 4]


def test_other_fields_and_no_capacity_are_refused():
    with pytest.raises(ValueError, match=r"push: rows must have \['number'\], got \['tokens'\]"):
        push(filled([1]), {"tokens": np.zeros(1)}, 0)
    with pytest.raises(ValueError, match="empty_store: capacity must be at least 1, got 0"):
        empty_store(0)
