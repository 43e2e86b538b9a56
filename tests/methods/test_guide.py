"""Guide: rows that were drawn with a hint are learned from without it."""

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe


def test_hinted_rows_are_trained_under_the_plain_prompt():
    chain = recipe("guide", max_rounds=2).experience
    actor, hinted = numpy_actor.NumpyActor(chance=0.1), 0
    for collected, _, _ in numpy_actor.walk(chain, actor):
        batch, rollouts = collected.batch, collected.batch.rollouts
        plain, _ = actor.prompts(
            [request.__class__(request.prompt, request.number, 1) for request in batch.requests]
        )
        np.testing.assert_array_equal(rollouts.prompt_tokens, plain)
        shown, _ = actor.prompts(batch.requests)
        rows = rollouts.records["off_policy"]
        np.testing.assert_array_equal(rollouts.records["shown_tokens"][rows], shown[rows])
        assert not rollouts.records["shown_length"][~rows].any()
        views = np.array([request.view.label != "plain" for request in batch.requests])
        np.testing.assert_array_equal(rows, views)
        hinted += int(rows.sum())
    assert hinted > 0


def test_groups_of_every_round_are_asked_again_with_a_hint():
    chain = recipe("guide", max_rounds=3).experience
    (found,) = numpy_actor.walk(chain, numpy_actor.NumpyActor(chance=-1.0), steps=1)
    collected = found[0]
    views = [batch.requests[0].view.label for batch in collected.seen]
    assert views == ["plain", "hint(fraction=0.5)"] * 3
    assert collected.metrics["redrawn_fraction"] == 1.0


@pytest.mark.slow
def test_training_learns_across_prompts(tmp_path):
    # A bound at which most groups are asked again, whatever the base has learned.
    steps = training_runs.on_brackets(
        "guide", tmp_path, hyperparameters=("low=0.8", "max_rounds=1")
    )
    assert max(training_runs.values(steps, "experience/redrawn_fraction")) > 0
    ratios = training_runs.values(steps, "ratio/min")
    assert min(ratios) < 0.9  # hinted rows, in the first update
