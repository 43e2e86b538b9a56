"""The in-process actor: which random numbers a row has, and that rows are scored as drawn."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import RunActor, SampleRequest
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-4  # two programs that compute log-probs of a few nats


@pytest.fixture(scope="module")
def run(model):
    return training_runs.prepared(training_runs.settings(model, "unused"))


@pytest.fixture(scope="module")
def actor(run):
    state = run.initial_state()
    params = run.sampler_params(state.device)
    return RunActor(run.start.sampler, params, run.start.tables, 0, run.scorer(state.device))


@pytest.mark.thorough
def test_a_row_is_the_same_whatever_else_is_asked(run, actor):
    prompt, key = run.task.train[2], jax.random.key(3)
    whole = actor.draw([SampleRequest(prompt, 2, 4)], key).rollouts
    one_by_one = [SampleRequest(prompt, 2, 1, first_sample=sample) for sample in range(4)]
    for requests in (one_by_one, [SampleRequest(run.task.train[0], 0, 1), *one_by_one]):
        rows = actor.draw(requests, key).rollouts.tokens[-4:]
        np.testing.assert_array_equal(rows, whole.tokens)


@pytest.mark.thorough
def test_a_teacher_samples_the_requests_to_it(run, actor):
    other = jax.tree.map(lambda x: -x, actor.params)
    taught = replace(actor, teacher=lambda: other)
    prompt, key = run.task.train[2], jax.random.key(3)
    own = SampleRequest(prompt, 2, 4)
    asked = [own, replace(own, policy="teacher", first_sample=4)]
    alone = replace(actor, params=other).draw([replace(own, first_sample=4)], key)
    tokens = taught.draw(asked, key).rollouts.tokens
    np.testing.assert_array_equal(tokens[4:], alone.rollouts.tokens)
    np.testing.assert_array_equal(tokens[:4], actor.draw([own], key).rollouts.tokens)
    with pytest.raises(ValueError, match=r"draw: the recipe must have a teacher that samples"):
        actor.draw(asked, key)


@pytest.mark.thorough
def test_a_prompt_that_is_asked_twice_is_not_answered_alike(run, actor):
    request = SampleRequest(run.task.train[2], 2, 4)
    first, second = actor.draw([request, request], jax.random.key(3)).rollouts.tokens.reshape(
        2, 4, -1
    )
    assert np.any(first != second)


@pytest.mark.thorough
def test_branches_are_scored_as_they_were_drawn(model):
    """In the context of their parents' first tokens, which stand in the response."""
    settings = training_runs.settings(
        model, "unused", method="cure", hyperparameters=("samples=1", "barred_characters=0")
    )
    run = training_runs.prepared(settings)
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    assert np.any(rollouts.branch_position > 0)
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    np.testing.assert_allclose(
        np.where(rollouts.mask, logp, 0),
        np.where(rollouts.mask, rollouts.behaviour_logp, 0),
        rtol=0,
        atol=FLOAT32,
    )
    sampled = rollouts.mask & (rollouts.parent >= 0)[:, None]
    assert sampled.any()
