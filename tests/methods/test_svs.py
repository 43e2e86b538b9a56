"""SvS: the policy writes variations of problems that it solves sometimes, and solves them."""

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.stages.problems.written import WRITE
from rlvr_jax.methods.self_play.svs import SOLVE_WRITTEN


def test_a_problem_too_long_to_be_asked_is_none():
    class Wordy(numpy_actor.NumpyActor):
        def encode(self, text):
            return [1] * (50 if text.startswith("about ") else 1)

    for actor, some in ((numpy_actor.NumpyActor(), True), (Wordy(), False)):
        found = walked("svs", 4, actor)
        told = [collected.metrics.get("written_problems", 0) for collected, _, _ in found]
        assert any(told) == some


def test_problems_are_written_from_right_answers_and_earn_by_their_pass_rate():
    wrote = solved = 0
    given = {"low": 0.2, "high": 0.8, "written_low": 0.2, "written_high": 0.8, "sources": 3}
    for collected, _, _ in walked("svs", 10, numpy_actor.NumpyActor(chance=0.4), **given):
        batch, rollouts = collected.batch, collected.batch.rollouts
        if not rollouts.mask.any():
            continue
        for rows in batch.groups:
            cell, outcomes = rollouts.records["cell"][rows[0]], rollouts.outcome[rows]
            assert (rollouts.records["cell"][rows] == cell).all() and len(rows) == 4
            if cell == WRITE:
                wrote += 1
                assert outcomes.max() == 1 and set(outcomes.tolist()) <= {0.0, 1.0}
                assert all(
                    batch.requests[row].view.label.startswith("with_request") for row in rows
                )
            else:
                assert 0 < outcomes.mean() < 1
                assert (cell == SOLVE_WRITTEN) == (batch.requests[rows[0]].number >= 12)
                solved += cell == SOLVE_WRITTEN
        np.testing.assert_array_equal(rollouts.reward, rollouts.outcome)
    assert wrote > 0 and solved > 0


def test_a_written_problem_keeps_the_answer_of_its_prompt():
    given = {"low": 0.2, "high": 0.8, "sources": 3}
    for collected, _, _ in walked("svs", 6, numpy_actor.NumpyActor(chance=0.4), **given):
        answers = {prompt.answer for prompt in numbered_task().train}
        for batch in collected.seen[1:]:
            assert {request.prompt.answer for request in batch.requests} <= answers
            assert all(request.prompt.text.startswith("about ") for request in batch.requests)


@pytest.mark.slow
def test_training_on_problems_that_the_policy_writes(tmp_path):
    given = ("high=0.9", "sources=8")
    steps = training_runs.on_brackets("svs", tmp_path, steps=3, hyperparameters=given)
    assert max(training_runs.values(steps, "experience/written_problems")) > 0
    assert max(training_runs.values(steps, "experience/sources")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
