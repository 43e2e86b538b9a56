"""EMPG: scale the credit of an agent's step by its certainty, and pay for certain steps after
it.
"""

import pytest
from turn_runs import assert_turns_were_learned_from, run_of


@pytest.mark.slow
def test_empg_credits_turns_by_their_entropy(tmp_path):
    assert_turns_were_learned_from(run_of(tmp_path, "empg"))
