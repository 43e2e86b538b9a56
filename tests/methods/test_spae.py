"""SPAE: probes after each step, and a run that is credited by them."""

import dataclasses

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.credit.spae import probe_steps, steps_of


def collected(stage):
    ((found, _, _),) = numpy_actor.walk(experience(stages=[stage]), steps=1)
    return found.batch, found.metrics


def test_steps_end_where_the_separator_does():
    batch, _ = collected(probe_steps(" ", ""))
    for own, response, length in zip(
        steps_of(batch, " "), batch.responses, batch.rollouts.length.tolist(), strict=True
    ):
        words = len(response.text.split())
        assert own[-1] == length and len(own) == max(1, words)
    assert [own[-1:] for own in steps_of(batch, "none of them")] == [
        [length] for length in batch.rollouts.length.tolist()
    ]


def test_a_probe_scores_the_answer_behind_the_opening():
    batch, told = collected(probe_steps(" ", "so"))
    actor, rollouts = numpy_actor.NumpyActor(), batch.rollouts
    opening, checked = actor.encode("so"), 0
    for row, own in enumerate(steps_of(batch, " ")):
        answer = actor.encode(str(batch.requests[row].prompt.answer))
        first = 0
        for number, end in enumerate(own):
            tokens = np.array([*opening, *answer])[-len(answer) :]
            correct = np.exp(actor._logp(tokens, 0)).mean()
            sure = np.exp(-(0.1 * (tokens % 5)).mean())
            part = slice(first, end)
            assert (rollouts.records["step"][row, part] == number).all()
            np.testing.assert_allclose(
                rollouts.records["probe_accuracy"][row, part], correct, rtol=1e-5
            )
            np.testing.assert_allclose(
                rollouts.records["probe_confidence"][row, part], sure, rtol=1e-5
            )
            first, checked = end, checked + 1
    assert told["steps"] == checked / 16 > 1
    assert (rollouts.records["step"][~rollouts.mask] == -1).all()


def test_an_answer_that_does_not_fit_is_refused():
    actor = numpy_actor.NumpyActor(response_tokens=3)
    with pytest.raises(ValueError, match=r"answer must have 1 to 0 tokens, got \d"):
        chain = experience(stages=[probe_steps(" ", "so it is")])
        own = dataclasses.replace(numpy_actor.setting(chain), response_tokens=3)
        numpy_actor.walk(chain, actor, steps=1, own=own)
    with pytest.raises(ValueError, match="separator must be a text, got ''"):
        probe_steps("")


@pytest.mark.thorough
def test_training_credits_steps_by_their_probes(tmp_path):
    model = training_runs.write_policy(tmp_path / "policy")
    given = ("separator= ", "opening=+ =")
    config = training_runs.settings(
        model, tmp_path / "run", method="spae", hyperparameters=given, steps=2
    )
    training_runs.quietly(config)
    lines = training_runs.metrics(tmp_path / "run")
    assert max(training_runs.values(lines, "gradient_norm")) > 0
    assert min(training_runs.values(lines, "experience/steps")) > 1
    assert min(training_runs.values(lines, "potential_bonus")) > 0
    for name in ("confidence", "accuracy"):
        assert all(0 < x < 1 for x in training_runs.values(lines, f"experience/probe_{name}"))
