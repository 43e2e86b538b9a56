"""The queue of groups whose rows finish in any order."""

import numpy as np
import pytest

from rlvr_jax.experience.draws.group_queue import GroupQueue


def differ(rows):
    return len(set(rows)) > 1


def test_the_worked_example():
    queue = GroupQueue(size=2, redundancy=1, staleness=1, keep=differ)
    queue.advance(0)
    assert queue.groups == [0, 1]
    assert [queue.next() for _ in range(7)] == [0, 0, 0, 1, 1, 1, None]
    queue.put(1, 1)
    queue.put(1, 0)
    assert queue.get() is None  # 0 is older
    queue.put(0, 1)
    queue.put(0, 1)
    assert queue.groups == [1, 2]
    queue.put(0, 0)
    assert queue.get() == (1, [1, 0])
    assert [queue.next() for _ in range(4)] == [2, 2, 2, None]
    queue.advance(1)
    assert queue.groups == [2, 3]
    queue.advance(2)
    assert queue.groups == [3, 4]


def test_rows_behind_the_size_are_ignored():
    queue = GroupQueue(size=2, redundancy=1)
    queue.advance(0)
    for _ in range(3):
        queue.next()
    for row in "abc":
        queue.put(0, row)
    assert queue.get() == (0, ["a", "b"])


def finished(queue, steps, order):
    """Rows by group and number, in the order of the trained groups; `order` shuffles what ends."""
    found, started = [], {}
    for step in range(steps):
        queue.advance(step)
        while True:
            running = []
            while (group := queue.next()) is not None:
                started[group] = started.get(group, 0) + 1
                running.append((group, started[group] - 1))
            for place in order(len(running)):
                queue.put(running[place][0], running[place])
            taken = queue.get()
            if taken is not None or not running:
                break
        found.append(taken)
    return found


def test_without_staleness_and_redundancy_it_is_synchronous():
    found = finished(GroupQueue(size=3), 4, range)
    assert found == [(step, [(step, row) for row in range(3)]) for step in range(4)]


def test_a_filter_replaces_a_group_without_waiting_for_the_next_step():
    queue = GroupQueue(size=2, keep=lambda rows: rows[0][0] % 2 == 1)
    found = finished(queue, 3, range)
    assert [number for number, _ in found] == [1, 3, 5]


def test_the_same_ends_give_the_same_groups():
    def order(seed):
        random = np.random.default_rng(seed)
        return lambda number: random.permutation(number)

    make = [GroupQueue(4, redundancy=2, staleness=2) for _ in range(3)]
    one, same, other = (
        finished(queue, 5, order(seed)) for queue, seed in zip(make, (0, 0, 1), strict=True)
    )
    assert one == same and one != other
    assert [number for number, _ in one] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "GroupQueue: size must be at least 1, got 0"),
        ({"size": 1, "staleness": -1}, "GroupQueue: staleness must be at least 0, got -1"),
    ],
)
def test_queues_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GroupQueue(**options)


def test_a_step_does_not_go_back():
    queue = GroupQueue(1)
    queue.advance(3)
    with pytest.raises(ValueError, match="step must be at least 3, got 2"):
        queue.advance(2)
