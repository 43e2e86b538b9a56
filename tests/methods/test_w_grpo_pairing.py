"""Weighted GRPO on pairs: one hard but solvable and one easy but brittle prompt per update."""

import pytest

from rlvr_jax.methods.baselines.w_grpo_pairing import penalized_outcome


def test_a_negative_penalty_is_refused():
    with pytest.raises(ValueError, match="penalized_outcome: negative must be at least 0, got -1"):
        penalized_outcome(-1)
