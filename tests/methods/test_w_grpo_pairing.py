"""Weighted GRPO on pairs: one hard but solvable and one easy but brittle prompt per update."""

import numpy as np
import pytest
from answering import Right

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.baselines.w_grpo_pairing import (
    choose_pair,
    penalized_outcome,
    rare_event_pair,
)


def test_a_negative_penalty_is_refused():
    with pytest.raises(ValueError, match="penalized_outcome: negative must be at least 0, got -1"):
        penalized_outcome(-1)


def test_the_pair_is_the_rarest_success_and_the_rarest_failure():
    correct = np.array([0, 8, 2, 1, 1, 6, 7, 7])
    assert choose_pair(correct, np.full(8, 8), most=2) == (3, 6)
    assert choose_pair(correct[:2], np.full(2, 8), most=2) == (-1, -1)
    # Of two answers a prompt can be both.
    assert choose_pair(np.array([1, 1]), np.full(2, 2), most=1) == (0, 1)
    assert choose_pair(np.array([1]), np.full(1, 2), most=1) == (0, -1)


def test_a_run_trains_on_its_pair_once_it_is_found():
    actor = Right(lambda number: {10: 0.25, 11: 0.75}.get(number, 0.0))
    chain = experience(rare_event_pair(most=1, candidates=3))
    found = numpy_actor.walk(chain, actor, steps=5)
    chosen = next(step for step, (_, told, _) in enumerate(found) if "pair/hard" in told)
    assert chosen < 4
    for step, (collected, told, _) in enumerate(found):
        rated = [part for part in collected.seen if part.requests[0].rating]
        assert bool(rated) == (step <= chosen)
        if step > chosen:
            assert [
                collected.batch.requests[rows[0]].number for rows in collected.batch.groups
            ] == [*(10, 11, 10, 11)]
            assert (told["pair/hard_rate"], told["pair/easy_rate"]) == (0.25, 0.75)
