"""What a step measures before its updates, and that they get it."""

import jax
import numpy as np
import pytest
import training_runs
from numpy.testing import assert_allclose

from rlvr_jax.policy import score, score_prompts
from rlvr_jax.runs.step import collect
from rlvr_jax.training.learning import learn
from rlvr_jax.types import replace

# float32 in programs of other shapes
ROUNDING = dict(rtol=1e-4, atol=1e-5)


def stepped(model, **changes):
    """A run, its batch, the weights that drew it, and what the updates of a step are given."""
    run = training_runs.prepared(training_runs.settings(model, "unused", **changes))
    given, programs = [], run.programs

    def update(state, rollouts, *others):
        given.append(rollouts)
        return programs.update(state, rollouts, *others)

    run = replace(run, programs=replace(programs, update=update))
    state = run.initial_state()
    params = jax.device_get(state.device.params)
    batch = collect(run, state, 0).batch
    _, _, records = learn(run.learner, state.device, batch.rollouts, 0)
    return run, batch.rollouts, params, given, records


@pytest.mark.slow
def test_log_probs_at_other_temperatures_are_of_the_weights_that_sampled(model):
    run, rollouts, params, given, records = stepped(model, method="dcpo", minibatches=2, epochs=2)
    assert len(given) == 4
    # Hot is the first, as the method reads them.
    options = (("temperatures", (1.2, 0.8)),)
    alone = replace(run.start.model, mesh=None)
    wanted = score(alone, params, rollouts, {"logp", "tempered_logp"}, options).records[
        "tempered_logp"
    ]
    assert_allclose(records["old_tempered_logp"], wanted, **ROUNDING)
    assert not np.allclose(wanted[..., 0], wanted[..., 1], **ROUNDING)
    again = np.concatenate([rows.records["old_tempered_logp"] for rows in given[2:]])
    ids = np.concatenate([rows.rollout_id for rows in given[2:]])
    assert_allclose(again[np.argsort(ids)], wanted, **ROUNDING)


@pytest.mark.thorough
def test_updates_without_tokens_measure_nothing(model):
    """Of four updates one has a group that is kept; the others' zeros are no entropies."""
    settings = training_runs.settings(model, "unused", method="rloo", minibatches=4)
    run = training_runs.prepared(settings)
    batch = collect(run, run.initial_state(), 0).batch
    size = run.config.sampling.samples_per_prompt
    kept = np.arange(len(batch.grades)) // size == 2
    mask = batch.rollouts.mask & kept[:, None]
    reward = np.arange(len(kept), dtype=np.float32) % 2
    rollouts = batch.rollouts.replace(mask=mask, reward=reward, outcome=reward)
    _, metrics, records = learn(run.learner, run.initial_state().device, rollouts, 0)
    assert metrics["skipped_updates"] == 0.75
    assert_allclose(metrics["entropy"], records["entropy"][mask].mean(), rtol=1e-5)
    assert metrics["ratio/min"] > 0.5
    nothing = rollouts.replace(mask=np.zeros_like(mask))
    _, metrics, _ = learn(run.learner, run.initial_state().device, nothing, 0)
    assert np.isnan(metrics["entropy"]) and metrics["skipped_updates"] == 1


@pytest.mark.slow
def test_prompts_are_scored_by_the_weights_that_sampled(model):
    run, rollouts, params, given, _ = stepped(model, method="progrpo", minibatches=2)
    wanted = score_prompts(replace(run.start.model, mesh=None), params, rollouts)
    found = np.concatenate([rows.records["prompt_logp"] for rows in given])
    ids = np.concatenate([rows.rollout_id for rows in given])
    assert_allclose(found[np.argsort(ids)], wanted, **ROUNDING)
    assert np.all(wanted[:, 0] == 0) and np.any(wanted[:, 1] < 0)
