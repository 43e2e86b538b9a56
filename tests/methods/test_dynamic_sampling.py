"""Dynamic sampling: groups with a gradient fill the batch; prompts are sampled by their history."""

import math
from fractions import Fraction

import numpy as np
import pytest
from answering import Right, numbers_of

from rlvr_jax.experience import experience, uniform
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods.curricula.dynamic_sampling import (
    adaptive_refill,
    hard_first,
    prioritized,
    undecided,
)


def test_solved_prompts_are_left_out_until_too_few_are_left():
    actor = Right(lambda number: 1.0 if number < 6 else 0.5)
    chain = experience(prioritized(undecided, explore=0.1, decay=0.7, resample_below=0.875))
    found = numpy_actor.walk(chain, actor, steps=8)
    met = set()
    for collected, told, _ in found:
        asked = set(numbers_of(collected))
        assert not asked & met
        met |= {number for number in asked if number < 6}
        assert told["solved_fraction"] == len(met) / 12
    assert met == set(range(6))
    everything = experience(prioritized(hard_first, explore=0.1, decay=0.7, resample_below=0.5))
    ends = [len(set(numbers_of(c))) for c, _, _ in numpy_actor.walk(everything, actor, steps=6)]
    assert ends == [4] * 6


def test_hard_prompts_come_more_often():
    actor = Right(lambda number: 1.0 if number < 6 else 0.0)
    chain = experience(prioritized(hard_first, explore=0.1, decay=0.5))
    found = numpy_actor.walk(chain, actor, steps=40)
    late = np.array([numbers_of(collected) for collected, _, _ in found[10:]])
    assert np.mean(late >= 6) > 0.8


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"explore": 1.5}, r"explore must be in \[0, 1\], got 1.5"),
        ({"resample_below": 0.0}, "resample_below must be positive, got 0"),
    ],
)
def test_shares_out_of_range_are_refused(changed, wanted):
    with pytest.raises(ValueError, match=f"prioritized: {wanted}"):
        prioritized(**{"weight": undecided, "explore": 0.1, "decay": 0.7, **changed})


def test_no_group_that_stays_counts_as_one():
    chain = experience(stages=[adaptive_refill(uniform, rounds=2)])
    own = numpy_actor.setting(chain, numpy_actor.numbered_task(prompts=24))
    ((collected, _, state),) = numpy_actor.walk(chain, Right(lambda number: 1.0), steps=1, own=own)
    first, *_ = collected.seen
    assert tuple(state["adaptive_refill"]) == (1, len(first.groups))


def test_a_round_asks_as_many_prompts_as_are_likely_to_fill_the_batch():
    task = numbered_task(prompts=24)
    actor = Right(lambda number: 0.5 if number % 3 else 1.0)
    chain = experience(stages=[adaptive_refill(uniform, rounds=6)])
    own = numpy_actor.setting(chain, task)
    rate, asked = Fraction(1), []
    for collected, _, state in numpy_actor.walk(chain, actor, steps=6, own=own):
        kept = sampled = 0
        for part, after in zip(collected.seen, [*collected.seen[1:], None], strict=True):
            kept += np.sum(~uniform(part.outcomes()))
            sampled += len(part.groups)
            if after is not None:
                rate = min(rate, Fraction(max(int(kept), 1), sampled))
                asked.append(len(after.groups))
                assert asked[-1] == math.ceil(int(4 - kept) / rate)
        assert kept >= 4 and len(collected.batch.groups) == 4
        assert not uniform(collected.batch.outcomes()).any()
        assert tuple(state["adaptive_refill"]) == rate.as_integer_ratio()
    assert len(set(asked)) > 1
