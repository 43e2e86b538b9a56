"""Responses that begin with part of a solution: how long it is, and what is learned of it."""

import numpy as np
import pytest

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.views import begin_with
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.g2rpo_a import Guidance, guidance_after, guide_first_rows
from rlvr_jax.methods.guidance.prefix_rl import prefix_fraction
from rlvr_jax.methods.guidance.seele import Curve, fitted_curve, next_hint, search_hint
from rlvr_jax.objectives import GIVEN
from rlvr_jax.tasks import Prompt

FITTED = 1e-4  # least squares on exact points, up to its tolerance
LETTERS = Prompt("p", solution=("a", "b", "c", "d"))


@pytest.mark.parametrize(
    ("view", "tokens", "trained"),
    [
        (begin_with(0.5), "ab", False),
        (begin_with(0.6, trained=True), "ab", True),
        (begin_with(0.75, whole_steps=True), "abc", False),
        (begin_with(0.0), "", False),
    ],
)
def test_a_view_opens_a_response_with_part_of_the_solution(view, tokens, trained):
    shown = view.show(LETTERS, None)
    assert shown.text == "p" and shown.begun(list) == list(tokens) and shown.trained == trained


def test_a_known_curve_is_recovered_from_its_points():
    curve = Curve(0.1, 9.0, -0.6)
    points = [(p, float(curve(p))) for p in (0.2, 0.4, 0.6, 0.8)]
    np.testing.assert_allclose(fitted_curve(points, 0.5), curve, rtol=FITTED)
    assert abs(fitted_curve(points, 0.5).ratio(0.5) - curve.ratio(0.5)) < FITTED


def test_hints_move_towards_the_target():
    assert next_hint([(0.5, 0.0)], 0.5, 4) == 0.75
    assert next_hint([(0.5, 1.0), (0.25, 1.0)], 0.5, 4) == 0.0
    assert next_hint([(1.0, 0.0)], 0.5, 4) == 1.0
    assert next_hint([(0.5, 0.9)], 0.5, 10) < 0.5 < next_hint([(0.5, 0.1)], 0.5, 10)
    # Between what is too easy and what is too hard.
    assert 0.2 < next_hint([(0.2, 0.1), (0.8, 0.9)], 0.5, 10) < 0.8


@pytest.mark.parametrize(
    ("before", "accuracy", "length"), [(0.5, 0.25, 200), (0.25, 0.5, 50), (0.5, 0.0, 100)]
)
def test_guidance_moves_against_accuracy_at_every_third_step(before, accuracy, length):
    state = Guidance(np.int32(100), np.int32(0), np.zeros(2))
    for value in (before, before):
        state = guidance_after(state, value, 1000)
        assert state.length == 100
    assert guidance_after(state, accuracy, 1000).length == length


def test_the_first_rows_of_every_group_are_guided_and_trained_on_what_they_are_given():
    chain = experience(stages=[guide_first_rows(rows=2, longest=2)])
    actor = numpy_actor.NumpyActor()
    for collected, _, _ in numpy_actor.walk(chain, actor):
        batch, rollouts = collected.batch, collected.batch.rollouts
        given = rollouts.origin == GIVEN
        for rows in batch.groups:
            guided, free = rows[:2], rows[2:]
            assert not given[free].any()
            wanted = actor.encode("".join(batch.prompts[rows[0]].solution))[:2]
            assert (rollouts.tokens[guided, :2] == wanted).all()
        assert (rollouts.mask[given]).all() and given.sum() == 2 * 2 * len(batch.groups)
        assert collected.metrics["guided_tokens"] == 2


def test_prefixes_are_context_and_their_lengths_stay():
    fractions = [prefix_fraction(3, number, 1, 0.4, 0.8) for number in range(50)]
    assert fractions == [prefix_fraction(3, number, 1, 0.4, 0.8) for number in range(50)]
    assert 0.4 <= min(fractions) < 0.5 and 0.7 < max(fractions) < 0.8
    chain, prefixed = recipe("prefix_rl").experience, 0
    for collected, told, _ in numpy_actor.walk(chain):
        rollouts = collected.batch.rollouts
        given = np.zeros_like(rollouts.mask) if rollouts.origin is None else rollouts.origin == 3
        assert not (rollouts.mask & given).any()
        for rows in collected.batch.groups:
            assert len({collected.batch.asks[row].view for row in rows}) == 1
        prefixed += told["prefixed_fraction"]
    assert 0 < prefixed < 4


def test_a_group_is_drawn_in_rounds_with_hints_of_its_own():
    chain = recipe("seele", rounds=2).experience
    found = numpy_actor.walk(chain, steps=6)
    for step, (collected, told, state) in enumerate(found):
        batch = collected.batch
        assert [len(rows) for rows in batch.groups] == [4] * 4
        first, last = collected.seen
        assert all(ask.samples == 2 for ask in batch.asks)
        if step == 0:  # all steps but the last
            assert {ask.view.fraction for ask in first.asks} == {0.75}
        for rows in last.groups:
            ask = last.asks[rows[0]]
            assert state["remember_hints"][ask.number] == ask.view.fraction
        assert told["remembered_hint"] == np.mean([ask.view.fraction for ask in last.asks])
        # Given tokens of hints are on the mask.
        given = batch.rollouts.origin == GIVEN
        assert batch.rollouts.mask[given].all() and given.any()
    asked = [{a.number: a.view.fraction for a in c.seen[0].asks} for c, _, _ in found]
    again = [n for n in asked[4] if n in asked[0]] or [n for n in asked[5] if n in asked[0]]
    assert again  # the second epoch begins with what the first one ended with


def test_rows_must_be_a_multiple_of_the_rounds():
    with pytest.raises(ValueError, match="search_hint: rows of a group must be a multiple of"):
        experience(stages=[search_hint(4, 0.5)]).drawn_samples(6)
    with pytest.raises(ValueError, match="guide_first_rows: rows must be below the 2 rollouts"):
        experience(stages=[guide_first_rows(2, 8)]).drawn_samples(2)
