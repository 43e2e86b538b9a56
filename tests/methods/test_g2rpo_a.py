"""G²RPO-A: two rows of a group begin with part of a solution, less of it as the policy improves."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.g2rpo_a import (
    Guidance,
    given_tokens,
    guidance_after,
    guide_first_rows,
)
from rlvr_jax.objectives import GIVEN


@pytest.mark.slow
def test_training_gives_the_first_rows_the_beginning_of_a_solution(tmp_path):
    steps = training_runs.on_brackets("g2rpo_a", tmp_path, steps=7)
    assert min(training_runs.values(steps, "experience/guided_tokens")) > 0
    assert min(training_runs.values(steps, "given_tokens")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
    lengths = training_runs.values(steps, "experience/guidance_length")
    assert lengths[:3] == [3072, 3072, 3072] and min(lengths) < 3072
    part = training_runs.values(steps, "experience/partly_guided_rows")
    assert part[0] == 0 and max(part) == 1


@pytest.mark.parametrize(
    ("before", "accuracy", "length"), [(0.5, 0.25, 200), (0.25, 0.5, 50), (0.5, 0.0, 100)]
)
def test_guidance_moves_against_accuracy_at_every_third_step(before, accuracy, length):
    state = Guidance(np.int32(100), np.int32(0), np.zeros(2))
    for value in (before, before):
        state = guidance_after(state, value, 1000)
        assert state.length == 100
    assert guidance_after(state, accuracy, 1000).length == length


@pytest.mark.parametrize(
    ("length", "solution", "tokens"),
    # The whole solution at the greatest length, half of it at half the length, the paper's number
    # if the solution is longer, and never none.
    [(3072, 11, 11), (1536, 11, 5), (1536, 5000, 1536), (1, 11, 1), (3071, 11, 10)],
)
def test_shorter_solutions_are_given_in_proportion_to_the_length(length, solution, tokens):
    assert given_tokens(length, solution, longest=3072) == tokens


def test_responses_have_the_temperature_of_the_paper():
    _, draw = recipe("g2rpo_a").experience.draw
    assert draw.sampling == {"temperature": 0.7}


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
