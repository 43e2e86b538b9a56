"""TP-GRPO: merges steps of equal grade into thoughts and rewards them by the group's accuracy."""

import numpy as np
import pytest
from step_rewards import rollouts

from rlvr_jax.methods.credit.gen_prm_thoughts import nothing_at_the_end, thought_rewards
from rlvr_jax.objectives import discounted_returns, paid_tokens


@pytest.mark.thorough
def test_thoughts_of_the_worked_example():
    """Steps right right wrong right in a group of which a quarter is right."""
    steps = [1.0, 1.0, 0.0, 1.0]
    batch = rollouts([steps, steps, [], []], [0.0, 1.0, 0.0, 0.0])
    paid = paid_tokens(batch, batch.mask, thought_rewards(), 1.0, nothing_at_the_end)
    to_go = np.asarray(discounted_returns(paid, batch.mask))
    np.testing.assert_array_equal(to_go[0, [0, 4, 6]], [-0.5, -0.75, 0.25])
    np.testing.assert_array_equal(to_go[1, [0, 4, 6]], [0.5, 0.25, 0.25])
