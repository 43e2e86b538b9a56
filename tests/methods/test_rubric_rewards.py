"""Rubric rewards: pays responses that no verifier can check by several scored criteria."""

import numpy as np
import pytest
from reward_rows import rollouts

from rlvr_jax.experience import by_rubric, fraction_of_rubric
from rlvr_jax.methods.judges.rubric_rewards import anchored
from rlvr_jax.types import Criterion

ROUNDED = 1e-6  # the examples have six digits


@pytest.mark.thorough
def test_the_rubrics_of_the_worked_example():
    scores = np.tile(np.array([[1, 0.4, 0.5]]), (4, 1))
    rubric = [Criterion("a", 2.0), Criterion("b", kind="veto"), Criterion("c")]
    plain = [Criterion("a", 2.0), Criterion("b"), Criterion("c")]
    for own, combine, wanted in (
        (plain, anchored(), 0.725),
        (rubric, anchored(), 0.0),
        (rubric, fraction_of_rubric, 0.0),
        (rubric, anchored(veto_below=0.4), 0.725),
        (plain, anchored(saturation=0.5), 0.841980),
        (plain, anchored(synergy=0.25, pair=(0, 2)), 0.68),
        (plain, anchored(power=2.0), 0.525625),
    ):
        found = by_rubric(own, combine)(rollouts(scores))
        np.testing.assert_allclose(found, wanted, atol=ROUNDED)
