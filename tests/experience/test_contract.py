"""The laws of the experience, over every part: `part_cases` holds a chain for each factory."""

import functools

import jax
import numpy as np
import pytest
from paper_part_cases import TESTS_OF_GROUPS
from part_cases import CASES

from docs.metrics_page import metrics_of, unknown
from rlvr_jax.experience import curricula, draws, experience, laws, stages
from rlvr_jax.experience.laws import numpy_actor


def factories():
    """Public names of the rooms of parts that make a part."""
    names = {*curricula.__all__, *draws.__all__, *stages.__all__}
    return sorted(name for name in names - TESTS_OF_GROUPS.keys() if name.islower())


def test_every_factory_has_a_case():
    assert [name for name in factories() if name not in CASES] == []


@functools.cache
def case_of(name):
    return laws.Case(CASES[name])


@pytest.mark.parametrize("law", laws.LAWS)
@pytest.mark.parametrize("name", CASES)
def test_every_law_holds(name, law):
    laws.LAWS[law](case_of(name))


COUNTS = {"sampled_tokens", "given_tokens", "scored_tokens"}  # of the chain itself
OF_CASES = {"answered"}  # counted by their environments


@pytest.mark.parametrize("name", CASES)
def test_docstrings_list_every_metric(name):
    case = case_of(name)
    parts = case.chain.parts
    metrics = [{**collected.metrics, **observed} for collected, observed, _ in case.steps]
    listed = metrics_of([*parts.values()]) | COUNTS | OF_CASES
    # The second metric of a name is called <part>/<metric>.
    repeated = {f"{part}/{metric}" for part in parts for metric in listed}
    assert unknown({metric for each in metrics for metric in each}, listed | repeated) == []


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


@pytest.mark.thorough
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
    laws.require_same(whole[2][0], again)
