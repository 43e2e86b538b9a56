"""Curricula act as they say, and at the edges that their papers name."""

from dataclasses import replace

import numpy as np
import pytest
from answering import Right, numbers_of

from rlvr_jax.experience import experience, redraw
from rlvr_jax.experience.curricula.history import no_history, visited, visits_of
from rlvr_jax.experience.curricula.picks import mixed, rarest_order, weighted_order
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages import all_incorrect, outside
from rlvr_jax.experience.views import hint
from rlvr_jax.methods.agents.skill0 import next_active
from rlvr_jax.methods.curricula.cog_drift import climbed, easiest
from rlvr_jax.methods.curricula.dr_sci import exchanged, mastery_pool
from rlvr_jax.methods.curricula.drive import shrinking_pool
from rlvr_jax.methods.curricula.one_shot import chosen_prompts
from rlvr_jax.methods.entropy.erpo import heat_solved
from rlvr_jax.methods.guidance.nurl import unsolved_pool
from rlvr_jax.tasks import Grade

FLOAT32 = 1e-6  # rates of a few visits, one rounding each


FREQUENCY = 0.02  # four standard deviations of a share of 10,000 draws


def test_a_history_remembers_visits_rates_and_their_average():
    rates = [(1, 1.0), (1, 0.0), (1, 0.5), (2, 0.25)]
    history = visited(no_history(3), 4, rates, decay=0.5)
    np.testing.assert_array_equal(history.times_sampled, [0, 3, 1])
    np.testing.assert_array_equal(history.last, [-1, 4, 4])
    np.testing.assert_allclose(history.mean, [0.5, 0.4375, 0.375], rtol=FLOAT32)
    np.testing.assert_array_equal(history.latest, [np.nan, 0.5, 0.25])


def test_what_a_stage_draws_again_is_no_visit():
    chain = experience(stages=[redraw(all_incorrect, hint(0.5), place="append")])
    ((found, _, _),) = numpy_actor.walk(chain, Right(lambda number: 0.0), steps=1)
    assert len(found.seen) == 2
    visits = visits_of(found.seen, 12)
    assert [visit.number for visit in visits] == [
        found.seen[0].requests[4 * g].number for g in range(4)
    ]
    assert all(visit.batch is found.seen[0] for visit in visits)


def test_draws_without_replacement_follow_their_chances():
    chances = np.array([0.5, 0.3, 0.0, 0.2])
    random = np.random.default_rng(0)
    orders = np.array([weighted_order(random, chances) for _ in range(10_000)])
    assert orders.shape[1] == 3 and not np.any(orders == 2)
    first = np.bincount(orders[:, 0], minlength=4) / len(orders)
    np.testing.assert_allclose(first, chances, atol=FREQUENCY)
    # Behind the first one the others keep their shares of what is left.
    after = orders[orders[:, 0] == 0, 1]
    np.testing.assert_allclose(np.mean(after == 1), 0.6, atol=FREQUENCY)


def test_weights_that_are_all_0_draw_evenly():
    np.testing.assert_array_equal(mixed(np.zeros(4), 0.1), np.full(4, 0.25))


def test_the_least_visited_come_first():
    order = rarest_order(np.random.default_rng(0), np.array([2, 0, 1, 0]))
    assert set(order[:2].tolist()) == {1, 3} and order[2:].tolist() == [2, 0]


def test_the_mean_outcome_of_a_kept_group_is_strictly_between_the_bounds():
    outcomes = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [np.nan, np.nan], [1.0, np.nan]])
    np.testing.assert_array_equal(outside(0, 1)(outcomes), [True, False, True, True, True])
    np.testing.assert_array_equal(outside(0.5, 2)(outcomes), [True, True, False, True, False])
    with pytest.raises(ValueError, match="outside: low must be below high, got 1 and 1"):
        outside(1, 1)


def test_rows_of_solved_prompts_are_drawn_at_their_temperature():
    actor = Right(lambda number: float(number == 0))
    chain = experience([chosen_prompts([0, 1]), heat_solved(1.0, 0.1, 1.25)])
    found = numpy_actor.walk(chain, actor, steps=4)
    for step, (collected, told, _) in enumerate(found):
        batch = collected.batch
        for number, wanted in ((0, min(1 + 0.1 * 2 * step, 1.25)), (1, 1.0)):
            rows = np.array(numbers_of(collected)) == number
            np.testing.assert_allclose(batch.rollouts.temperature[rows], wanted, rtol=FLOAT32)
        assert told["heated_fraction"] == (0.5 if step else 0.0)


class SilentOnHalf(numpy_actor.NumpyActor):
    """No verdict on the first six prompts; the others are right."""

    def grade(self, batch):
        grades = [Grade(None if request.number < 6 else 1.0) for request in batch.requests]
        return batch.graded(grades)


@pytest.mark.parametrize(
    "pool",
    [
        lambda: shrinking_pool(after=[9], fractions=[0.5]),
        lambda: unsolved_pool(window=9, least_gain=0.0),
        lambda: mastery_pool(0.9, pending=0.5, discard=1.0, samples=2),
    ],
)
def test_prompts_that_nobody_can_grade_are_asked_as_often_as_the_others(pool):
    task = numbered_task()
    known = [replace(p, meta={**p.meta, "difficulty": 0.7}) for p in task.train]
    chain = experience(pool())
    own = numpy_actor.setting(chain, task=replace(task, train=known))
    found = numpy_actor.walk(chain, SilentOnHalf(), steps=6, own=own)
    # Three steps of four prompts come round once, whether they are graded or not.
    asked = [number for collected, _, _ in found for number in numbers_of(collected)[::4]]
    assert sorted(asked[:12]) == sorted(asked[12:]) == list(range(12))
    if "mastered_prompts" in found[0][1]:
        assert found[2][2]["mastery_pool"].times_sampled.max() == 0  # the epoch has ended


def test_what_is_at_a_bound_is_not_beyond_it_whatever_rounding_does():
    available = np.ones((1, 3), bool)
    assert climbed(easiest(available, 1), available, [0], [0.6], 0.6).level.tolist() == [0]
    thrice = np.array([0.9, 0.9, 0.9], np.float32).cumsum(dtype=np.float32)[-1:] / 3
    for accuracy in (np.array([0.6], np.float32), thrice):
        bound = round(float(accuracy[0]), 3)
        after, _ = exchanged(
            np.array([True, False]),
            np.array([False, True]),
            np.array([float(accuracy[0]), 0.0]),
            np.zeros(2),
            bound,
        )
        assert after.tolist() == [True, False]
    assert next_active({"a": -1e-17}, 3) == ["general", "a"]
