"""Responses that think in mixtures, drawn and trained by our actor."""

import numpy as np
import pytest
import training_runs
from everyday import everyday
from numpy.testing import assert_allclose

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.exploration.soft_grpo import soft_thinking
from rlvr_jax.objectives import GumbelNoise, soft_token_logp
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer, of some nats


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


def settings(policy, folder, **changes):
    own = {"hyperparameters": ("end==", "candidates=3"), **changes}
    return training_runs.settings(policy, folder, method="soft_grpo", **own)


def test_a_batch_brings_its_mixtures(policy):
    run = training_runs.prepared(settings(policy, "unused"))
    state = run.initial_state()
    found = collect(run, state, 0)
    rollouts = found.batch.rollouts
    assert rollouts.soft.any() and (rollouts.mask & ~rollouts.soft).any()
    logp = run.scorer(state)(rollouts, ["logp"], "current")["logp"]
    plain = rollouts.mask & ~rollouts.soft
    assert_allclose(rollouts.behaviour_logp[plain], logp[plain], atol=FLOAT32)


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
