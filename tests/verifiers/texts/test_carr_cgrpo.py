"""CaRR: statements of a rubric count where evidence links them to the answer."""

import pytest

from rlvr_jax.verifiers.texts.carr_cgrpo import reached_fraction


def test_evidence_counts_where_it_is_reached_from_the_answer():
    rubrics = [["E0", "E1"], ["E1", "E2"], ["E3", "E4"], ["E0", "E5"], ["E2", "E6"]]
    names = {f"E{number}": "name" for number in range(6)} | {"E6": None}
    assert reached_fraction(rubrics, [True, True, True, False, True], names) == 2 / 5
    assert reached_fraction([["E0"], []], [True, True]) == 1 / 2


def test_a_rubric_without_statements_is_refused():
    with pytest.raises(ValueError, match="one verdict for each of the 0 rubrics"):
        reached_fraction([], [])
