"""1-shot RLVR: one prompt fills every batch."""

import numpy as np
import pytest
from answering import numbers_of

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.one_shot import chosen_prompts


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
