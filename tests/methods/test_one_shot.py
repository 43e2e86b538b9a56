"""1-shot RLVR: one prompt fills every batch."""

import numpy as np
import pytest
from answering import numbers_of

from rlvr_jax.analysis.prompt_order import historical_variance, order
from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.one_shot import chosen_prompts, prompts_of_largest_variance


def test_each_copy_of_a_chosen_prompt_is_a_group_of_its_own():
    ((found, _, _),) = numpy_actor.walk(experience(chosen_prompts([3])), steps=1)
    assert len(found.batch.groups) == 4 and set(numbers_of(found)) == {3}
    tokens = [found.batch.rollouts.tokens[rows] for rows in found.batch.groups]
    assert all(np.any(tokens[0] != other) for other in tokens[1:])


def test_a_prompt_that_is_not_there_is_refused():
    chain = experience(chosen_prompts([12]))
    with pytest.raises(ValueError, match=r"numbers must be below 12, .* 'numbered', got 12"):
        chain.init(numpy_actor.setting(chain))
    with pytest.raises(ValueError, match="chosen_prompts: numbers must name prompts, got none"):
        chosen_prompts([])
    with pytest.raises(ValueError, match=r"numbers must be a whole number, got 1.5"):
        chosen_prompts([1.5])


def test_the_prompt_whose_pass_rate_varied_most_fills_the_later_steps():
    chain = experience(prompts_of_largest_variance(first_steps=9, number=2))
    found = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=0.4), steps=12)
    told = [told["chosen_score"] for _, told, _ in found]
    assert not any(told[:9])
    rates = {number: [] for number in range(12)}
    for collected, _, _ in found[:9]:
        batch = collected.batch
        for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
            rates[batch.requests[rows[0]].number].append(outcomes.mean())
    score = historical_variance(list(rates.values()))
    best = order(score.round(9))[:2]
    assert told[9] == pytest.approx(score[best].mean()) and told[9] > 0
    for collected, _, _ in found[9:]:
        assert set(numbers_of(collected)) == {*best.tolist()}
    events = [bool(chain.events(found[0][2], step)) for step in range(12)]
    assert events == [step == 9 for step in range(12)]
    with pytest.raises(ValueError, match=r"number must be at most 12, the train prompts .* got 13"):
        other = experience(prompts_of_largest_variance(first_steps=1, number=13))
        other.init(numpy_actor.setting(other))
