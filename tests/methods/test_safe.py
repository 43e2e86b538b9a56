"""The controller of the KL penalty, and the critics it comes with."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import only
from golden_vectors import assert_agrees
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.methods.clipping.safe import (
    CLIMBING,
    CONVERGED,
    PLATEAU,
    WARMUP,
    control_kl,
    initial_kl_control,
    pessimistic_advantage,
    predictive_kl_penalty,
    soft_min,
)


def phases(rewards):
    """The phase of every call on a series of rewards."""

    def call(state, reward):
        phase, _, state = control_kl(state, jnp.zeros(()), reward, 0.3)
        return state, phase

    return np.asarray(jax.lax.scan(call, initial_kl_control(), jnp.asarray(rewards))[1])


def test_phases_follow_the_reward():
    found = phases(np.concatenate([np.zeros(100), np.linspace(0, 1, 60), np.full(100, 1.0)]))
    assert (found[:49] == WARMUP).all() and (found[49:100] == PLATEAU).all()
    assert (found[115:160] == CLIMBING).all() and found[-1] == CONVERGED


def test_a_penalty_without_training_has_no_gradient_and_one_with_training_has():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    far = batch.replace(reference_logp=batch.reference_logp - 20)
    for trained in (False, True):
        part = predictive_kl_penalty(trained=trained)
        done = golden.step(only(part).objective, stats, far)
        assert done.loss > 0
        assert np.asarray(done.dstats.logp).any() == trained


def test_a_batch_without_tokens_is_not_remembered():
    batch = golden.rollouts("b")
    own = only(predictive_kl_penalty()).objective
    done = golden.step(own, golden.stats("b"), batch.replace(mask=batch.mask & False))
    assert done.loss == 0
    jax.tree.map(assert_agrees, done.state, own.init(golden.spec(batch)))


def test_the_soft_minimum_lies_between_minimum_and_mean():
    values = jnp.asarray([[0.1, 0.9], [0.5, 0.5]])
    found = np.asarray(soft_min(values, 0.3))
    assert 0.1 < found[0] < 0.5
    assert_agrees(found[1], 0.5)
    assert_agrees(soft_min(values, 1e-3)[0], 0.1 + 1e-3 * np.log(2))


def test_a_temperature_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="pessimistic_advantage: temperature must be positive"):
        pessimistic_advantage(0.0)


@pytest.mark.slow
def test_safe_fits_its_critics_to_answers_of_turns(tmp_path):
    world = "small_environments:in_turns"
    steps = run_of(tmp_path, "safe", experience=world, task="training_runs:sums")
    assert_turns_were_learned_from(steps)
