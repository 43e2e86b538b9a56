"""RL^V: trains the policy to verify its own rollouts, with the labels of RL."""

import numpy as np
import pytest
from training_runs import trained, values


@pytest.mark.slow
def test_pieces_of_an_update_change_nothing(model, tmp_path):
    given = ("question=+ =", "yes=8", "no=7")
    one, four = (trained(model, tmp_path / str(n), "rl_v", *given, micro_batches=n) for n in (1, 4))
    for name in ("verdict_loss", "gradient_norm"):
        np.testing.assert_allclose(values(one, name), values(four, name), rtol=1e-4)
    # Two tokens of fourteen, before anything is learned.
    assert values(one, "verdict_loss")[0] == pytest.approx(np.log(14), abs=0.5)
