"""SEELE: every prompt shows as much of its solution as makes half of the responses correct."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.seele import Curve, fitted_curve, next_hint
from rlvr_jax.objectives import GIVEN

FITTED = 1e-4  # least squares on exact points, up to its tolerance


@pytest.mark.slow
def test_training_searches_for_hints(tmp_path):
    steps = training_runs.on_brackets("seele", tmp_path)
    fractions = training_runs.values(steps, "experience/hint_fraction")
    assert all(0 <= fraction <= 1 for fraction in fractions) and fractions[0] < 10 / 11
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    # Sampler and scorer agree on sampled tokens, for all given ones.
    assert max(training_runs.values(steps, "sampler_ratio/max")) < 1.001


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


def test_a_group_is_drawn_in_rounds_with_hints_of_its_own():
    chain = recipe("seele", rounds=2).experience
    found = numpy_actor.walk(chain, steps=6)
    for step, (collected, told, state) in enumerate(found):
        batch = collected.batch
        assert [len(rows) for rows in batch.groups] == [4] * 4
        first, last = collected.seen
        assert all(request.samples == 2 for request in batch.requests)
        if step == 0:  # all steps but the last
            assert {request.view.fraction for request in first.requests} == {0.75}
        for rows in last.groups:
            request = last.requests[rows[0]]
            assert state["remember_hints"][request.number] == request.view.fraction
        assert told["remembered_hint"] == np.mean(
            [request.view.fraction for request in last.requests]
        )
        # Given tokens of hints are on the mask.
        given = batch.rollouts.records["origin"] == GIVEN
        assert batch.rollouts.mask[given].all() and given.any()
    asked = [{a.number: a.view.fraction for a in c.seen[0].requests} for c, _, _ in found]
    again = [n for n in asked[4] if n in asked[0]] or [n for n in asked[5] if n in asked[0]]
    assert again  # the second epoch begins with what the first one ended with
