"""Responses that think in mixtures, drawn and trained by our actor."""

import golden_vectors as golden
import numpy as np
import pytest
import training_runs
from everyday import everyday
from numpy.testing import assert_allclose

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.exploration.soft_grpo import soft_thinking, with_soft_tokens
from rlvr_jax.objectives import Context, GumbelNoise, ppo_clip, soft_token_logp
from rlvr_jax.runs.step import collect
from rlvr_jax.types import Signals, replace

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of some nats


BOUNDS = GumbelNoise()


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


def settings(policy, folder, **changes):
    own = {"hyperparameters": ("end==", "candidates=3"), **changes}
    return training_runs.settings(policy, folder, method="soft_grpo", **own)


@pytest.mark.thorough
def test_a_batch_brings_its_mixtures(policy):
    run = training_runs.prepared(settings(policy, "unused"))
    state = run.initial_state()
    found = collect(run, state, 0)
    rollouts = found.batch.rollouts
    assert rollouts.records["soft"].any() and (rollouts.mask & ~rollouts.records["soft"]).any()
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    plain = rollouts.mask & ~rollouts.records["soft"]
    assert_allclose(rollouts.behaviour_logp[plain], logp[plain], atol=FLOAT32)


@pytest.mark.thorough
@pytest.mark.parametrize("updates", everyday([1, 2], 2))
def test_it_trains_and_the_first_ratio_is_one(policy, tmp_path, updates):
    config = settings(policy, tmp_path / "run", minibatches=updates, steps=2, learning_rate=1e-3)
    training_runs.quietly(config)
    lines = training_runs.metrics(tmp_path / "run")
    assert len(training_runs.values(lines, "loss")) == 2
    assert all(np.isfinite(training_runs.values(lines, "loss")))
    assert min(training_runs.values(lines, "experience/soft_fraction")) > 0
    for bound in ("max", "min"):
        found = training_runs.values(lines, f"ratio/{bound}")
        if updates == 1:
            assert set(found) == {1.0}
        else:
            # The second update of a batch sees weights that have moved, and little.
            assert_allclose(found, 1, atol=0.2)
            assert set(found) != {1.0}


def test_an_end_of_several_tokens_is_refused():
    chain = experience(draw=soft_thinking(end="abc"))
    with pytest.raises(ValueError, match="end must be one token of the policy's, got 'abc' of 3"):
        numpy_actor.walk(chain, steps=1)


def test_a_density_is_a_mean_over_candidates_above_the_floor():
    bounds = GumbelNoise(low=-5, high=5, floor=-1.0)
    logp = np.log(np.array([0.7, 0.3]))
    noisy = logp + np.array([0.2, 0.4])
    found = soft_token_logp(logp, noisy, bounds)
    assert float(found) == pytest.approx(-0.2 - np.exp(-0.2), abs=1e-5)


def test_candidates_that_are_as_likely_as_they_were_have_ratio_one():
    stats = golden.stats("b")
    batch = golden.rollouts("b").replace(old_candidate_logp=stats.records["candidate_logp"])
    assert np.asarray(batch.records["soft"] & batch.mask).any()
    context = Context(stats, batch, stats.logp, None)
    signals = Signals.neutral(batch.mask, np.float64)
    found = with_soft_tokens(ppo_clip(0.2, 0.2), BOUNDS).prepare(signals, context)
    np.testing.assert_array_equal(found.ratio, np.ones(batch.mask.shape))


def test_without_soft_positions_the_surrogate_is_unchanged():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    batch = batch.replace(soft=batch.mask & False)
    plain = ppo_clip(0.2, 0.2)
    context = Context(stats, batch, batch.old_logp, None)
    signals = replace(Signals.neutral(batch.mask, np.float64), advantage=batch.records["values"])
    for surrogate in (plain, with_soft_tokens(plain, BOUNDS)):
        losses = surrogate.loss(surrogate.prepare(signals, context), context)
        if surrogate is plain:
            wanted = losses
    np.testing.assert_array_equal(losses, wanted)
