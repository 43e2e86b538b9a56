"""A comparison in two turns: what a malformed answer does to the advantages of the others."""

import numpy as np
import pytest

from rlvr_jax.methods.exploration.rorecomp import estimator
from rlvr_jax.objectives import group_normalized
from rlvr_jax.types import Rollouts
from rlvr_jax.verifiers.texts.br_rm import reward

PRINTED = 2e-6
"""As many digits as the example prints."""

TURN = "[dimensions]accuracy\nstyle[/dimensions][analysis]issue[/analysis]"


@pytest.mark.parametrize(
    ("malformed", "wanted"),
    [(-100.0, [0.361628, 0.333265, -2.474671]), (-2.0, [0.661437, -0.661437, -1.984311])],
)
def test_one_malformed_answer_hides_correct_from_incorrect(malformed, wanted):
    turns = [*5 * ["[preference]1[/preference]"], *2 * ["[preference]2[/preference]"], "the first"]
    earned = [reward(TURN, turn, "1", malformed) for turn in turns]
    assert earned == [*5 * [0], *2 * [-1], malformed]
    batch = Rollouts.of_responses(
        np.ones((8, 1), np.int32),
        np.ones((8, 1), bool),
        np.array(earned, float),
        np.zeros(8, int),
        behaviour_logp=np.zeros((8, 1)),
    )
    found = estimator(group_normalized(1e-6))(batch)[[0, 5, 7], 0]
    np.testing.assert_allclose(found, wanted, atol=PRINTED)
