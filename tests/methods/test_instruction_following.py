"""Instruction following: multiplies rule checks by a judge's verdict on the other constraints."""

import numpy as np
import pytest
from training_runs import trained, values

from rlvr_jax.experience import column, plain_outcome
from rlvr_jax.methods.rewards.instruction_following import product
from rlvr_jax.types import Rollouts

PRINTED = 1e-6
"""As many digits as the examples print."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("hard", "soft", "reward"),
    [(2 / 3, 1.0, 0.666667), (2 / 3, 0.0, 0.0), (2 / 3, np.nan, np.nan), (1.0, 1.0, 1.0)],
)
def test_hard_and_soft_constraints_are_multiplied(hard, soft, reward):
    batch = Rollouts.of_responses(
        np.ones((1, 1), int),
        np.ones((1, 1), bool),
        np.array([hard]),
        np.zeros(1),
        component_rewards=np.array([[soft]]),
    )
    found, _, told = product({"hard": plain_outcome, "soft": column(0)}).apply(
        batch, ((), ()), None
    )
    np.testing.assert_allclose(found, [reward], atol=PRINTED)
    assert told["reward/hard"] == pytest.approx(hard)
    assert float(told["vetoed_fraction"]) == (soft == 0)


@pytest.mark.slow
def test_soft_constraints_are_asked_about_where_there_are_any(model, tmp_path):
    lines = trained(
        model,
        tmp_path / "run",
        "instruction_following",
        task="text_tasks:constrained",
        judge="own_judges:kept",
        judge_prompt="constraints",
    )
    asked = values(lines, "experience/judge_asked")
    assert all(0 < count < 16 for count in asked)
    soft = values(lines, "experience/reward/soft")
    assert all(0 < mean < 1 for mean in soft)
