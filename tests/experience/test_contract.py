"""The laws of the experience, over every part: `part_cases` holds a chain for each factory."""

import functools
from typing import NamedTuple

import jax
import numpy as np
import numpy_actor
import pytest
from part_cases import CASES, TESTS_OF_GROUPS

from rlvr_jax.experience import Experience, curricula, draws, experience, stages
from rlvr_jax.objectives import GIVEN

STEPS = 4


def factories():
    """Public names of the rooms of parts that make a part."""
    names = {*curricula.__all__, *draws.__all__, *stages.__all__}
    return sorted(name for name in names - TESTS_OF_GROUPS.keys() if name.islower())


def same(one, two):
    """Whether two collections have the same bytes, but for wall times."""
    jax.tree.map(np.testing.assert_array_equal, one.batch.rollouts, two.batch.rollouts)
    # As text: a number that a grade does not know is NaN, which is equal to nothing.
    assert one.batch.asks == two.batch.asks and str(one.batch.grades) == str(two.batch.grades)
    assert one.metrics == two.metrics
    jax.tree.map(np.testing.assert_array_equal, one.state, two.state)
    return True


class Walk(NamedTuple):
    """The first steps of a part's chain, for all tests that look at them.

    Fields:
      chain: what was walked.
      steps: what each collected, what it told, and the state behind it.
      drawn: tokens that the actor drew in each of its calls.
    """

    chain: Experience
    steps: list
    drawn: list[int]


@functools.cache
def walk_of(name):
    drawn = []

    class Counting(numpy_actor.NumpyActor):
        def draw(self, asks, key, sampling=None, constants=None):
            batch = super().draw(asks, key, sampling, constants)
            rollouts = batch.rollouts
            own = True if rollouts.origin is None else rollouts.origin != GIVEN
            drawn.append(int((rollouts.mask & own).sum()))
            return batch

    chain = CASES[name]()
    return Walk(chain, numpy_actor.walk(chain, Counting(), steps=STEPS), drawn)


def test_every_factory_has_a_case():
    assert [name for name in factories() if name not in CASES] == []


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_stops_after_any_step_goes_on_in_the_same_bytes(name):
    whole = walk_of(name).steps
    for stop in range(1, STEPS):
        # The state goes through a file in between: numpy arrays and nothing else. It is the same
        # behind the next step, so all further ones are.
        state = jax.tree.map(lambda x: np.array(x), whole[stop - 1][2])
        ((two, told_again, after_again),) = numpy_actor.walk(
            CASES[name](), steps=1, first=stop, state=state
        )
        one, told, after = whole[stop]
        assert same(one, two) and told == told_again
        jax.tree.map(np.testing.assert_array_equal, after, after_again)


@pytest.mark.parametrize("name", CASES)
def test_state_keeps_its_arrays(name):
    chain, steps, _ = walk_of(name)
    shapes = [
        jax.tree.map(lambda x: (np.shape(x), np.asarray(x).dtype), state)
        for state in (chain.init(numpy_actor.setting(chain)), steps[-1][2])
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", CASES)
def test_rows_are_whole_groups_of_graded_answers(name):
    chain, steps, _ = walk_of(name)
    own = numpy_actor.setting(chain)
    most = np.prod([part.most for part in (chain.draw[1], *chain.stages.values())])
    for collected, _, _ in steps:
        batch = collected.batch
        rollouts = batch.rollouts
        assert len(batch) == len(batch.grades) == len(rollouts.group)
        assert 0 < len(batch) <= own.prompts * own.samples * most
        assert np.all(np.diff(rollouts.group) >= 0)
        np.testing.assert_array_equal(rollouts.rollout_id, np.arange(len(batch)))
        assert np.all(rollouts.length <= own.response_tokens)
        # Nothing is on the mask behind a response's end.
        places = np.arange(own.response_tokens)[None]
        assert not np.any(rollouts.mask & (places >= rollouts.length[:, None]))


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_is_the_verifiers_word(name):
    for collected, _, _ in walk_of(name).steps:
        batch = collected.batch
        told = [grade.outcome or 0.0 for grade in batch.grades]
        np.testing.assert_array_equal(batch.rollouts.outcome, np.asarray(told, np.float32))


@pytest.mark.parametrize("name", CASES)
def test_what_is_counted_as_drawn_is_what_the_actor_drew(name):
    _, steps, drawn = walk_of(name)
    counted = sum(collected.metrics["drawn_tokens"] for collected, _, _ in steps)
    assert counted == sum(drawn)


@pytest.mark.parametrize("name", CASES)
def test_another_seed_gives_another_batch(name):
    chain = CASES[name]()
    own = numpy_actor.setting(chain, seed=1)
    one, two = walk_of(name).steps[0][0], numpy_actor.walk(chain, steps=1, own=own)[0][0]
    # A batch of stored solutions, which are all alike here, differs by its prompts.
    told = [
        ([ask.number for ask in found.batch.asks], found.batch.rollouts.tokens.tolist())
        for found in (one, two)
    ]
    assert told[0] != told[1]


def pairs():
    """Every draw that is not the plain one with the curricula and stages of every case."""
    made = {name: case() for name, case in CASES.items()}
    others = [name for name, chain in made.items() if chain.draw[0] != "plain" and not chain.stages]
    found = []
    for draw in others:
        # Those that change what a row or a group is every day, the others before a release.
        marks = () if draw in ("chunks", "turns") else pytest.mark.slow
        for name, chain in made.items():
            if chain.stages:
                found.append(pytest.param(draw, name, marks=marks, id=f"{draw}-{name}"))
    return found


def composed(draw, name):
    """The chain of a case with the draw of another."""
    chain, other = CASES[name](), CASES[draw]()
    return experience(list(chain.curricula.values()), other.draw[1], list(chain.stages.values()))


@pytest.mark.parametrize(("draw", "name"), pairs())
def test_a_draw_goes_with_a_stage_or_is_refused(draw, name):
    stages = CASES[name]().stages.values()
    if CASES[draw]().draw[1].splits and any(stage.by_row for stage in stages):
        with pytest.raises(ValueError, match="draw must return each response as one row for"):
            composed(draw, name)
        return
    if CASES[draw]().draw[1].fewer and any(stage.counts for stage in stages):
        with pytest.raises(ValueError, match="draw must return all rows that"):
            composed(draw, name)
        return
    chain = composed(draw, name)
    whole = numpy_actor.walk(chain, steps=3)
    for collected, _, _ in whole:
        rollouts = collected.batch.rollouts
        assert len(collected.batch) > 0 and np.all(np.diff(rollouts.group) >= 0)
        told = [grade.outcome or 0.0 for grade in collected.batch.grades]
        np.testing.assert_array_equal(rollouts.outcome, np.asarray(told, np.float32))
        places = np.arange(rollouts.mask.shape[1])[None]
        assert not np.any(rollouts.mask & (places >= rollouts.length[:, None]))
    state = jax.tree.map(lambda x: np.array(x), whole[1][2])
    ((again, _, _),) = numpy_actor.walk(composed(draw, name), steps=1, first=2, state=state)
    assert same(whole[2][0], again)
