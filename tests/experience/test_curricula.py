"""Curricula act as they say, and at the edges that their papers name."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from rlvr_jax.experience import experience, redraw, uniform
from rlvr_jax.experience.curricula.history import no_history, visited, visits_of
from rlvr_jax.experience.curricula.picks import mixed, rarest_order, weighted_order
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages import all_wrong, outside
from rlvr_jax.experience.views import hint
from rlvr_jax.methods.agents.skill0 import next_active
from rlvr_jax.methods.baselines.w_grpo_pairing import choose_pair, rare_event_pair
from rlvr_jax.methods.curricula.cog_drift import climbed, easiest
from rlvr_jax.methods.curricula.dr_sci import exchanged, mastery_pool
from rlvr_jax.methods.curricula.drive import hardest, shrinking_pool
from rlvr_jax.methods.curricula.dynamic_sampling import (
    adaptive_refill,
    hard_first,
    prioritized,
    undecided,
)
from rlvr_jax.methods.curricula.mmr1_vas import (
    as_they_are,
    distinct_ngrams,
    edit_distance,
    min_max,
    refreshed,
    variance_promotion,
)
from rlvr_jax.methods.curricula.one_shot import chosen_prompts
from rlvr_jax.methods.curricula.rlve import Levels, adaptive_levels, counted, raised
from rlvr_jax.methods.entropy.erpo import heat, heat_solved, streaks
from rlvr_jax.methods.guidance.nurl import unsolved_pool
from rlvr_jax.tasks import Grade, Prompt, Task

FLOAT32 = 1e-6  # rates of a few visits, one rounding each


FREQUENCY = 0.02  # four standard deviations of a share of 10,000 draws


def numbers_of(found):
    return [ask.number for ask in found.batch.asks]


class Right(numpy_actor.NumpyActor):
    """Answers right at certain prompts alone, by (number) -> share of a group's first rows."""

    def __init__(self, share):
        super().__init__(chance=0.0)
        object.__setattr__(self, "share", share)

    def grade(self, batch):
        graded = super().grade(batch)
        outcome = graded.rollouts.outcome.copy()
        for rows in graded.groups:
            right = round(self.share(graded.asks[rows[0]].number) * len(rows))
            outcome[rows] = np.arange(len(rows)) < right
        told = [type(grade)(float(x)) for grade, x in zip(graded.grades, outcome, strict=True)]
        graded = graded.with_rollouts(outcome=outcome, reward=outcome)
        return type(graded)(graded.rollouts, graded.asks, told)


def test_a_history_remembers_visits_rates_and_their_average():
    rates = [(1, 1.0), (1, 0.0), (1, 0.5), (2, 0.25)]
    history = visited(no_history(3), 4, rates, decay=0.5)
    np.testing.assert_array_equal(history.visits, [0, 3, 1])
    np.testing.assert_array_equal(history.last, [-1, 4, 4])
    np.testing.assert_allclose(history.mean, [0.5, 0.4375, 0.375], rtol=FLOAT32)
    np.testing.assert_array_equal(history.latest, [np.nan, 0.5, 0.25])


def test_what_a_stage_draws_again_is_no_visit():
    chain = experience(stages=[redraw(all_wrong, hint(0.5), place="append")])
    ((found, _, _),) = numpy_actor.walk(chain, Right(lambda number: 0.0), steps=1)
    assert len(found.seen) == 2
    visits = visits_of(found.seen, 12)
    assert [visit.number for visit in visits] == [
        found.seen[0].asks[4 * g].number for g in range(4)
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


def test_solved_prompts_are_left_out_until_too_few_are_left():
    actor = Right(lambda number: 1.0 if number < 6 else 0.5)
    chain = experience(prioritized(undecided, explore=0.1, decay=0.7, resample_below=0.875))
    found = numpy_actor.walk(chain, actor, steps=8)
    met = set()
    for collected, told, _ in found:
        asked = set(numbers_of(collected))
        assert not asked & met
        met |= {number for number in asked if number < 6}
        assert told["solved_fraction"] == len(met) / 12
    assert met == set(range(6))
    everything = experience(prioritized(hard_first, explore=0.1, decay=0.7, resample_below=0.5))
    ends = [len(set(numbers_of(c))) for c, _, _ in numpy_actor.walk(everything, actor, steps=6)]
    assert ends == [4] * 6


def test_hard_prompts_come_more_often():
    actor = Right(lambda number: 1.0 if number < 6 else 0.0)
    chain = experience(prioritized(hard_first, explore=0.1, decay=0.5))
    found = numpy_actor.walk(chain, actor, steps=40)
    late = np.array([numbers_of(collected) for collected, _, _ in found[10:]])
    assert np.mean(late >= 6) > 0.8


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"explore": 1.5}, r"explore must be in \[0, 1\], got 1.5"),
        ({"resample_below": 0.0}, "resample_below must be positive, got 0"),
    ],
)
def test_shares_out_of_range_are_refused(changed, wanted):
    with pytest.raises(ValueError, match=f"prioritized: {wanted}"):
        prioritized(**{"weight": undecided, "explore": 0.1, "decay": 0.7, **changed})


def test_no_group_that_stays_counts_as_one():
    chain = experience(stages=[adaptive_refill(uniform, rounds=2)])
    own = numpy_actor.setting(chain, numpy_actor.numbered_task(prompts=24))
    ((collected, _, state),) = numpy_actor.walk(chain, Right(lambda number: 1.0), steps=1, own=own)
    first, *_ = collected.seen
    assert tuple(state["adaptive_refill"]) == (1, len(first.groups))


def test_a_round_asks_as_many_prompts_as_are_likely_to_fill_the_batch():
    task = numbered_task(prompts=24)
    actor = Right(lambda number: 0.5 if number % 3 else 1.0)
    chain = experience(stages=[adaptive_refill(uniform, rounds=6)])
    own = numpy_actor.setting(chain, task)
    rate, asked = Fraction(1), []
    for collected, _, state in numpy_actor.walk(chain, actor, steps=6, own=own):
        kept = drawn = 0
        for part, after in zip(collected.seen, [*collected.seen[1:], None], strict=True):
            kept += np.sum(~uniform(part.outcomes()))
            drawn += len(part.groups)
            if after is not None:
                rate = min(rate, Fraction(max(int(kept), 1), drawn))
                asked.append(len(after.groups))
                assert asked[-1] == math.ceil(int(4 - kept) / rate)
        assert kept >= 4 and len(collected.batch.groups) == 4
        assert not uniform(collected.batch.outcomes()).any()
        assert tuple(state["adaptive_refill"]) == rate.as_integer_ratio()
    assert len(set(asked)) > 1


def test_the_mean_outcome_of_a_kept_group_is_strictly_between_the_bounds():
    outcomes = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [np.nan, np.nan], [1.0, np.nan]])
    np.testing.assert_array_equal(outside(0, 1)(outcomes), [True, False, True, True, True])
    np.testing.assert_array_equal(outside(0.5, 2)(outcomes), [True, True, False, True, False])
    with pytest.raises(ValueError, match="outside: low must be below high, got 1 and 1"):
        outside(1, 1)


def test_a_prompt_is_asked_hotter_with_each_all_right_visit():
    streak, asked = np.zeros(1, np.int32), []
    for right in (True, True, False, True, False, True):
        asked.append(float(heat(streak[0], 1.0, 0.05, 1.3)))
        streak = streaks(streak, [0], [right])
    np.testing.assert_allclose(asked, [1.0, 1.05, 1.1, 1.0, 1.05, 1.0], rtol=FLOAT32)
    for _ in range(6):
        streak = streaks(streak, [0], [True])
    assert heat(streak[0], 1.0, 0.05, 1.3) == 1.3


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


def test_a_highest_temperature_below_the_base_is_refused():
    with pytest.raises(ValueError, match=r"heat_solved: highest must be at least 1, got 0.9"):
        heat_solved(1.0, 0.05, 0.9)


def test_the_pool_keeps_the_prompts_of_lowest_rate():
    pool = np.array([True, True, False, True, True])
    rates = np.array([0.5, np.nan, 0.0, 0.25, 0.25])
    np.testing.assert_array_equal(hardest(pool, rates, 2), [False, False, False, True, True])
    np.testing.assert_array_equal(hardest(pool, rates, 1), [False, False, False, True, False])
    np.testing.assert_array_equal(hardest(pool, rates, 9), pool)


def test_a_run_ends_on_its_hardest_prompts():
    actor = Right(lambda number: 1 - number / 12)
    chain = experience(shrinking_pool(after=[3, 5], shares=[0.5, 0.2]))
    found = numpy_actor.walk(chain, actor, steps=7, own=numpy_actor.setting(chain, samples=12))
    asked = [set(numbers_of(collected)) for collected, _, _ in found]
    # Three steps of four prompts come round once.
    assert asked[0] | asked[1] | asked[2] == set(range(12))
    assert asked[3] | asked[4] <= set(range(6, 12))
    assert asked[5] == asked[6] == {9, 10, 11}
    assert [told["pool_prompts"] for _, told, _ in found] == [12, 12, 6, 6, 3, 3, 3]
    # Three prompts fill four groups: one has two, which are not alike.
    last = found[-1][0].batch
    twice = [
        rows
        for rows in last.groups
        if numbers_of(found[-1][0]).count(last.asks[rows[0]].number) > 12
    ]
    assert len(twice) == 2
    assert np.any(last.rollouts.tokens[twice[0]] != last.rollouts.tokens[twice[1]])


class SilentOnHalf(numpy_actor.NumpyActor):
    """No verdict on the first six prompts; the others are right."""

    def grade(self, batch):
        grades = [Grade(None if ask.number < 6 else 1.0) for ask in batch.asks]
        outcome = np.array([grade.outcome or 0 for grade in grades], np.float32)
        return replace(batch.with_rollouts(outcome=outcome, reward=outcome), grades=grades)


@pytest.mark.parametrize(
    "pool",
    [
        lambda: shrinking_pool(after=[9], shares=[0.5]),
        lambda: unsolved_pool(after=9),
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
        assert found[2][2]["mastery_pool"].visits.max() == 0  # the epoch has ended


@pytest.mark.parametrize(
    ("after", "shares", "wanted"),
    [
        ([3, 2], [0.5, 0.2], r"after must not fall, got \(3, 2\)"),
        ([3], [0.5, 0.2], r"shares must be 1 numbers, got \(0.5, 0.2\)"),
        ([0], [0.5], "each of after must be at least 1, got 0"),
    ],
)
def test_phases_that_do_not_fit_are_refused(after, shares, wanted):
    with pytest.raises(ValueError, match=f"shrinking_pool: {wanted}"):
        shrinking_pool(after, shares)


def test_levels_below_the_highest_say_nothing_and_the_last_one_stays():
    none = np.zeros(1, np.int32)
    levels = Levels(np.array([1], np.int32), none, none)
    place = np.zeros(3, int)
    levels = counted(levels, place, np.array([0, 1, 1]), np.array([True, True, False]))
    assert (levels.right, levels.answers) == (1, 2)
    assert raised(levels, 3, 0.5, np.array([5])) == levels
    assert raised(levels, 2, 0.5, np.array([5])) == (2, 0, 0)
    assert raised(levels, 2, 0.6, np.array([5])) == (1, 0, 0)
    assert raised(levels, 2, 0.5, np.array([1])) == (1, 0, 0)


def test_each_kind_climbs_by_its_own_answers():
    actor = Right(lambda number: float(number % 2))  # kind "odd" is right, "even" is wrong
    chain = experience(adaptive_levels(window=2, prompts=1, threshold=0.9))
    found = numpy_actor.walk(chain, actor, steps=8)
    assert found[-1][1]["level/odd"] == 2 and found[-1][1]["level/even"] == 0
    high = [0]
    for collected, told, _ in found:
        for ask in collected.batch.asks:
            level = ask.prompt.meta["level"]  # 0, 1 or 2 in this task
            limit = high[-1] if ask.prompt.kind == "odd" else 0
            assert max(0, limit - 1) <= level <= limit
        high.append(int(told["level/odd"]))
    assert high[1] == 1 and sum(told["levels_raised"] for _, told, _ in found) == 2


def test_prompts_without_a_level_are_refused():
    plain = Task("plain", [Prompt("a", meta={"year": 1})], [Prompt("b")], None)
    chain = experience(adaptive_levels(window=2, prompts=1, threshold=0.9))
    wanted = r"""every train prompt must have meta\["level"\], got \{'year': 1\} for 'a'"""
    with pytest.raises(ValueError, match=wanted):
        chain.init(numpy_actor.setting(chain, plain))
    far = experience(adaptive_levels(window=2, prompts=1, threshold=0.9, start=3))
    with pytest.raises(ValueError, match="start must be at most 2, the last level of kind 'even'"):
        far.init(numpy_actor.setting(far))


def test_ratings_and_training_score_prompts_and_weights_change_at_a_refresh_alone():
    chain = experience(variance_promotion(0.5, 1.0, 0.0, refresh=3, rated=4, rating_samples=2))
    actor = Right(lambda number: 0.5 * (number % 2))
    found = numpy_actor.walk(chain, actor, steps=7)
    told = [told for _, told, _ in found]
    assert [t["rated"] for t in told] == [4, 0, 0, 4, 0, 0, 4]
    weights = [state["variance_promotion"].weight for _, _, state in found]
    changed = [np.any(one != two) for one, two in itertools.pairwise(weights)]
    assert changed[2] and not np.any([changed[step] for step in (0, 1, 3, 4)])
    for collected, _, state in found:
        rated = [part for part in collected.seen if part.asks[0].rating]
        assert all(len(rows) == 2 for part in rated for rows in part.groups)
        assert len(collected.batch) == 16 and not any(a.rating for a in collected.batch.asks)
        score = state["variance_promotion"].score
        known = ~np.isnan(score)
        # P (1 - P) is a quarter for odd prompts and 0 for even ones.
        np.testing.assert_array_equal(score[known], np.where(np.arange(12) % 2, 0.25, 0)[known])
    assert told[0]["scored_fraction"] >= 6 / 12 and told[-1]["scored_fraction"] > 0.9
    # Half of a late batch is drawn by weight: prompts that vary.
    late = np.array([numbers_of(collected)[:8] for collected, _, _ in found[4:]])
    last = weights[3]
    assert np.all(last[late] > 0)


def test_prompts_without_a_score_have_the_mean_of_the_others():
    score = np.array([0.2, np.nan, 0.1])
    np.testing.assert_allclose(refreshed(np.zeros(3), score, as_they_are, 0.0), [0.2, 0.15, 0.1])
    np.testing.assert_allclose(
        refreshed(np.ones(3), score, min_max, 0.5), [1, 0.75, 0.5], rtol=1e-6
    )
    nothing = np.full(3, np.nan)
    np.testing.assert_array_equal(refreshed(np.zeros(3), nothing, min_max, 0.0), np.zeros(3))
    np.testing.assert_array_equal(mixed(min_max(np.full(3, 0.2)), 0.0), np.full(3, 1 / 3))


def test_answers_are_compared_on_the_mask_alone():
    tokens = np.array([[1, 2, 3, 9, 9], [1, 2, 9, 3, 4]])
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]], bool)
    # 123, 123, 234: two of three differ.
    assert distinct_ngrams(tokens, mask) == pytest.approx(2 / 3)
    assert distinct_ngrams(tokens, mask & False) == 0
    assert edit_distance(tokens, mask) == 1
    assert edit_distance(tokens[:1], mask[:1]) == 0


@pytest.mark.parametrize("seed", range(5))
def test_edit_distance_agrees_with_the_recurrence(seed):
    random = np.random.default_rng(seed)
    one, two = (random.integers(0, 3, 7) for _ in range(2))
    lengths = random.integers(0, 8, 2)
    mask = np.arange(7)[None] < lengths[:, None]
    table = np.zeros((lengths[0] + 1, lengths[1] + 1))
    table[:, 0], table[0] = np.arange(lengths[0] + 1), np.arange(lengths[1] + 1)
    for i in range(lengths[0]):
        for j in range(lengths[1]):
            swapped = table[i, j] + (one[i] != two[j])
            table[i + 1, j + 1] = min(table[i, j + 1] + 1, table[i + 1, j] + 1, swapped)
    assert edit_distance(np.stack([one, two]), mask) == table[-1, -1]


def test_each_copy_of_a_chosen_prompt_is_a_group_of_its_own():
    ((found, _, _),) = numpy_actor.walk(experience(chosen_prompts([3])), steps=1)
    assert len(found.batch.groups) == 4 and set(numbers_of(found)) == {3}
    tokens = [found.batch.rollouts.tokens[rows] for rows in found.batch.groups]
    assert all(np.any(tokens[0] != other) for other in tokens[1:])


def test_a_prompt_that_is_not_there_is_refused():
    chain = experience(chosen_prompts([12]))
    with pytest.raises(ValueError, match=r"numbers must be below 12, .* 'numbered', got 12"):
        chain.init(numpy_actor.setting(chain))
    with pytest.raises(ValueError, match="chosen_prompts: numbers must name prompts, got none"):
        chosen_prompts([])
    with pytest.raises(ValueError, match=r"numbers must be a whole number, got 1.5"):
        chosen_prompts([1.5])


def test_the_pair_is_the_rarest_success_and_the_rarest_failure():
    right = np.array([0, 8, 2, 1, 1, 6, 7, 7])
    assert choose_pair(right, np.full(8, 8), most=2) == (3, 6)
    assert choose_pair(right[:2], np.full(2, 8), most=2) == (-1, -1)
    # Of two answers a prompt can be both.
    assert choose_pair(np.array([1, 1]), np.full(2, 2), most=1) == (0, 1)
    assert choose_pair(np.array([1]), np.full(1, 2), most=1) == (0, -1)


def test_a_run_trains_on_its_pair_once_it_is_found():
    actor = Right(lambda number: {10: 0.25, 11: 0.75}.get(number, 0.0))
    chain = experience(rare_event_pair(most=1, candidates=3))
    found = numpy_actor.walk(chain, actor, steps=5)
    chosen = next(step for step, (_, told, _) in enumerate(found) if "pair/hard" in told)
    assert chosen < 4
    for step, (collected, told, _) in enumerate(found):
        rated = [part for part in collected.seen if part.asks[0].rating]
        assert bool(rated) == (step <= chosen)
        if step > chosen:
            assert [collected.batch.asks[rows[0]].number for rows in collected.batch.groups] == [
                *(10, 11, 10, 11)
            ]
            assert (told["pair/hard_rate"], told["pair/easy_rate"]) == (0.25, 0.75)


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
