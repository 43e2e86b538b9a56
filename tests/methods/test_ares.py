"""Window entropies across holes, and the form of the hesitation score."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees
from training_runs import trained, values

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.rewards.ares import (
    EASY,
    HARD,
    MEDIUM,
    HesitationScale,
    difficulty_level,
    hesitation_advantage,
    hesitation_count,
    hesitation_score,
    hesitation_target,
    mark_triggers,
    response_threshold,
    window_entropy,
)

ENTROPY = array([[1.0, np.nan, 3.0, 5.0, 7.0], [2.0, 4.0, np.nan, np.nan, np.nan]], np.float64)


MASK = array([[1, 0, 1, 1, 1], [1, 1, 0, 0, 0]], bool)


@pytest.mark.thorough
def test_windows_follow_the_token_and_skip_holes():
    found, exists = window_entropy(ENTROPY, MASK, 2)
    assert_agrees(found, [[4, 0, 6, 0, 0], [0] * 5])
    np.testing.assert_array_equal(exists, [[1, 0, 1, 0, 0], [0] * 5])


@pytest.mark.thorough
def test_missing_windows_count_as_the_mean_of_the_others_or_as_the_first_token():
    batch = golden.rollouts("b").replace(mask=MASK)
    assert_agrees(response_threshold(ENTROPY, batch, 2, 100.0), [6, 2])
    assert_agrees(response_threshold(ENTROPY, batch, 2, 50.0), [5, 2])


def test_only_trigger_words_count():
    trigger = array([[0, 1, 1, 0, 1], [1, 0, 0, 0, 0]], bool)
    batch = golden.rollouts("b").replace(mask=MASK, trigger=trigger)
    assert_agrees(hesitation_count(ENTROPY, batch, jnp.asarray(5.5), 2), [1, 0])


@pytest.mark.thorough
def test_prompts_are_sorted_by_thirds():
    outcome = array([1, 1, 0, 1, 0, 0, 0, 0, 0], np.float64)
    group = array(np.arange(9) // 3, np.int32)
    assert_agrees(difficulty_level(outcome, group)[::3], [EASY, MEDIUM, HARD])


@pytest.mark.thorough
def test_targets_are_means_over_prompts_rounded_to_even():
    count, level = array([1, 3, 3, 4, 4], np.int32), array([EASY] * 5, np.int32)
    group = array([0, 0, 1, 1, 1], np.int32)
    ids, everyone = array(np.arange(5), np.int32), jnp.ones(5, bool)
    found = hesitation_target(count, level, group, ids, everyone)
    assert_agrees(found, np.full(5, 3))  # of 2 and 11/3
    halves = hesitation_target(count, level, array([0, 1, 1, 1, 1], np.int32), ids, everyone)
    assert_agrees(halves, np.full(5, 2))  # of 1 and 3.5
    some = hesitation_target(count, level, group, ids, array([0, 1, 1, 0, 0], bool))
    assert_agrees(some, np.full(5, 3))  # of 3 and 3


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bend": (0.0, 1.0, 1.0)}, "each of bend must be positive, got 0"),
        ({"cap": (1.0, 1.0)}, "cap must have three entries"),
        ({"size": -1.0}, "size must be positive, got -1"),
    ],
)
def test_a_scale_that_makes_no_score_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=f"HesitationScale: {sentence}"):
        HesitationScale(**changes)


@pytest.mark.parametrize(("level", "sign"), [(EASY, -1), (MEDIUM, -1), (HARD, 1)])
def test_excess_costs_right_answers_unless_the_prompt_is_hard(level, sign):
    count = jnp.arange(6, 30)
    form = (jnp.full(count.shape, 6.0), jnp.full(count.shape, level))
    correct = hesitation_score(count, *form, jnp.ones(count.shape, bool), HesitationScale())
    incorrect = hesitation_score(count, *form, jnp.zeros(count.shape, bool), HesitationScale())
    assert (sign * np.diff(correct) >= 0).all() and sign * correct[-1] > 0
    assert (np.diff(incorrect) >= 0).all() and (np.asarray(incorrect) > 0).all()


def test_a_window_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="hesitation_advantage: window must be at least 1, got 0"):
        hesitation_advantage(window=0)


def test_likeliest_words_trigger_whatever_was_drawn():
    chain = experience(stages=[mark_triggers(["a", "longer"])])
    ((collected, _, _),) = numpy_actor.walk(chain, steps=1)
    batch, actor = collected.batch, numpy_actor.NumpyActor()
    (letter,), (capital,) = actor.encode("a"), actor.encode("A")
    likeliest = actor.score(batch, ["max_id"])["max_id"]
    wanted = np.isin(likeliest, [letter, capital]) & batch.rollouts.mask
    np.testing.assert_array_equal(batch.rollouts.records["trigger"], wanted)
    assert wanted.any() and not wanted.all()
    with pytest.raises(ValueError, match=r"got \['longer'\], of which none is one"):
        numpy_actor.walk(experience(stages=[mark_triggers(["longer"])]), steps=1)


@pytest.mark.thorough
def test_second_thoughts_are_counted(model, tmp_path):
    lines = trained(model, tmp_path / "run", "ares", "triggers=3 5 +", "percentile=10.0")
    assert all(count > 0 for count in values(lines, "experience/triggers"))
