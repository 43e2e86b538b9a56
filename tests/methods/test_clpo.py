"""CLPO: hard prompts are rewritten simpler and medium ones differently, and both are trained on."""

import pytest
import training_runs
from walks import walked

from rlvr_jax.experience.laws import numpy_actor


def asked(batch):
    """The ask of each group."""
    return [batch.requests[rows[0]] for rows in batch.groups]


def test_hard_prompts_are_rewritten_and_asked_in_the_same_step():
    rewritten = 0
    for collected, _, _ in walked("clpo", 8, numpy_actor.NumpyActor(chance=0.3)):
        batch, told = collected.batch, collected.metrics
        if not batch.rollouts.mask.any():
            continue
        for request, rows in zip(asked(batch), batch.groups, strict=True):
            outcomes = batch.rollouts.outcome[rows]
            assert (
                0 < outcomes.mean() < 1
                and len({*batch.rollouts.records["cell"][rows].tolist()}) == 1
            )
            new = request.number >= 12
            rewritten += new
            assert new == request.prompt.text.startswith("about ")
            assert not new or batch.rollouts.records["cell"][rows[0]] in (0, 1)
        news = [request.number >= 12 for request in asked(batch)]
        # What was made of hard prompts comes first, then of medium ones, then the prompts.
        assert news == sorted(news, reverse=True)
        assert (
            told["rewritten_accepted"] == sum(news)
            if "rewritten_accepted" in told
            else not any(news)
        )
    assert rewritten > 0


@pytest.mark.slow
def test_training_on_rewritten_problems(tmp_path):
    steps = training_runs.on_brackets("clpo", tmp_path, steps=3)
    assert max(training_runs.values(steps, "experience/rewritten")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0
