"""rStar-Math: searches for correct responses step by step, and imitates the best traces."""

import numpy as np
import pytest
import training_runs
from search_runs import run_of, walked

from rlvr_jax.experience import experience
from rlvr_jax.methods.trees.rstar_math import rejection_sampling, step_tree


def searched(**changes):
    draw = step_tree(**{"separator": "x", "candidates": 3, "iterations": 3, **changes})
    return walked(experience(draw=draw, stages=[rejection_sampling()]))


def test_of_a_search_the_right_traces_are_imitated():
    imitated = wrong = 0
    for found in searched():
        rollouts = found.batch.rollouts
        right = rollouts.outcome > 0.5
        assert not rollouts.mask.any() and np.all(rollouts.temperature == 1)
        assert not rollouts.supervised[~right].any()
        assert found.metrics["imitated_answers"] == rollouts.supervised.sum()
        assert found.metrics["solved_prompts"] == len(np.unique(rollouts.group[right]))
        imitated, wrong = imitated + rollouts.supervised.sum(), wrong + (~right).sum()
        assert max(map(len, found.batch.groups)) <= 2
    assert imitated > 2 and wrong > 0


def test_a_search_draws_at_its_temperature_and_trains_at_one():
    chain = experience(draw=step_tree("x", candidates=2, iterations=2, temperature=0.5))
    assert all(np.all(found.batch.rollouts.temperature == 0.5) for found in walked(chain, 1))


def test_more_descents_solve_no_fewer_prompts():
    few, many = (
        sum(found.metrics["solved_prompts"] for found in searched(iterations=n)) for n in (1, 24)
    )
    assert 0 < few < many


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"candidates": 0}, "candidates must be"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"separator": ""}, "separator must be a text"),
    ],
)
def test_a_search_that_cannot_be_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        step_tree(**given)


@pytest.mark.slow
def test_rstar_math_trains_by_its_name(tmp_path):
    given = ("separator=+", "candidates=4", "iterations=6", "depth=3")
    training_runs.quietly(run_of(tmp_path, "rstar_math", *given))
    steps = training_runs.metrics(tmp_path / "run")
    assert sum(training_runs.values(steps, "experience/imitated_answers")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
