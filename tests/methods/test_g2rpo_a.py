"""G²RPO-A: two rows of a group begin with part of a solution, less of it as the policy improves."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.guidance.g2rpo_a import Guidance, guidance_after, guide_first_rows
from rlvr_jax.objectives import GIVEN


@pytest.mark.slow
def test_training_gives_the_first_rows_the_beginning_of_a_solution(tmp_path):
    steps = training_runs.on_brackets("g2rpo_a", tmp_path, steps=3)
    assert min(training_runs.values(steps, "experience/guided_tokens")) > 0
    assert min(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    lengths = training_runs.values(steps, "experience/guidance_length")
    assert lengths[0] == 3072


@pytest.mark.parametrize(
    ("before", "accuracy", "length"), [(0.5, 0.25, 200), (0.25, 0.5, 50), (0.5, 0.0, 100)]
)
def test_guidance_moves_against_accuracy_at_every_third_step(before, accuracy, length):
    state = Guidance(np.int32(100), np.int32(0), np.zeros(2))
    for value in (before, before):
        state = guidance_after(state, value, 1000)
        assert state.length == 100
    assert guidance_after(state, accuracy, 1000).length == length


def test_the_first_rows_of_every_group_are_guided_and_trained_on_what_they_are_given():
    chain = experience(stages=[guide_first_rows(rows=2, longest=2)])
    actor = numpy_actor.NumpyActor()
    for collected, _, _ in numpy_actor.walk(chain, actor):
        batch, rollouts = collected.batch, collected.batch.rollouts
        given = rollouts.records["origin"] == GIVEN
        for rows in batch.groups:
            guided, free = rows[:2], rows[2:]
            assert not given[free].any()
            wanted = actor.encode("".join(batch.prompts[rows[0]].solution))[:2]
            assert (rollouts.tokens[guided, :2] == wanted).all()
        assert (rollouts.mask[given]).all() and given.sum() == 2 * 2 * len(batch.groups)
        assert collected.metrics["guided_tokens"] == 2
