"""Traces of the base models that ship: words of their vocabularies, as padded rows."""

from pathlib import Path

import numpy as np
import pytest
from everyday import everyday

from rlvr_jax import policy
from rlvr_jax.experiments.base_traces.rows import Trace, padded_rows
from rlvr_jax.experiments.pretrain_base import BASES, Config

FOLDERS = Path(policy.__file__).parents[1] / "tasks" / "base_models"


# The traces of sketches need 2,000 fits of equations.
@pytest.mark.parametrize("name", everyday(BASES, *(BASES.keys() - {"sketches"}), first=()))
def test_traces_are_of_the_vocabulary_that_ships_and_fit_into_the_positions(name):
    base = BASES[name]
    ids = policy.tokenizer(FOLDERS / name).get_vocab()
    assert ids == {word: place for place, word in enumerate(base.vocabulary)}
    assert base.vocabulary[: base.numbers] == tuple(map(str, range(base.numbers)))
    for traces in base.traces(Config(out=Path(), task=name, num_traces=20)):
        rows = padded_rows(traces, ids, base.stop)
        assert len(traces) == 20 and rows.length.max() <= base.positions
        for tokens, length, trace in zip(rows.tokens, rows.length, traces, strict=True):
            words = [*trace.prompt, *(word for part, _ in trace.response for word in part)]
            assert [base.vocabulary[id] for id in tokens[:length]] == [*words, base.stop]


def test_words_of_a_tool_are_context_and_the_stop_token_is_not():
    traces = [Trace("a b", [("c", False), ("b a", True)]), Trace("a", [("c", False)])]
    rows = padded_rows(traces, {"a": 0, "b": 1, "c": 2, " ": 3, "<pad>": 4, ".": 5}, ".")
    np.testing.assert_array_equal(rows.tokens[0], [0, 3, 1, 2, 1, 3, 0, 5])
    np.testing.assert_array_equal(rows.tokens[1], [0, 2, 5, *[4] * 5])
    np.testing.assert_array_equal(rows.context[0], [0, 0, 0, 0, 1, 1, 1, 0])
    assert rows.length.tolist() == [8, 3] and rows.prompt_length.tolist() == [3, 1]
