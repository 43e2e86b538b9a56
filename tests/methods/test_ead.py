"""EAD: hot at the start of every response, cold at its end, and cooler later in training."""

from dataclasses import replace

import numpy as np
import pytest
import training_runs
from compiling import compilations
from temperature_runs import run_of, turn

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.entropy.ead import count_cooled, growing_horizon
from rlvr_jax.rollout import annealed, annealed_temperature
from rlvr_jax.runs.step import collect

FLOAT32 = 2e-5  # temperatures and log-probs of a float32 sampler, of at most some nats


def test_the_horizon_grows_to_its_end():
    horizon = growing_horizon(start=20.0, growth=10.0, most=45.0)
    found = [horizon(turn(step))["horizon"] for step in range(5)]
    np.testing.assert_array_equal(found, np.float32([20, 30, 40, 45, 45]))


def test_the_temperature_begins_at_the_hottest_crosses_one_and_ends_at_the_coldest():
    horizon = np.float64(30.0)
    one, floor = 30 * np.log(1.2), 30 * np.log(1 + 1.2 - 0.1)
    places = np.array([0.0, one, floor, 500.0])
    found = annealed_temperature(places, horizon, hottest=1.2, coldest=0.1, untouched=0)
    np.testing.assert_allclose(found, [1.2, 1.0, 0.1, 0.1], rtol=1e-12)  # float64


def test_tokens_below_a_temperature_of_1_are_counted():
    # Horizon 2: 2.2 - exp(n / 2) is above 1 for n = 0 only, and the first token is untouched.
    stage = count_cooled(1.2, 0.1, 1, growing_horizon(2.0, 0.0, 9.0))
    ((collected, _, _),) = numpy_actor.walk(experience(stages=[stage]), steps=1)
    length = np.asarray(collected.batch.rollouts.mask).sum(axis=1)
    wanted = np.maximum(length - 1, 0).sum() / length.sum()
    assert 0 < collected.metrics["cooled_fraction"] == pytest.approx(wanted)
    hot = count_cooled(1.2, 0.1, 1, growing_horizon(500.0, 0.0, 500.0))
    ((collected, _, _),) = numpy_actor.walk(experience(stages=[hot]), steps=1)
    assert collected.metrics["cooled_fraction"] == 0
    assert collected.metrics["last_temperature"] > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coldest": 1.5}, "annealed: coldest must be at most hottest 1.2, got 1.5"),
        ({"coldest": 0.0}, "annealed: coldest must be positive, got 0"),
        ({"untouched": -1}, "annealed: untouched must be at least 0, got -1"),
    ],
)
def test_annealing_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        annealed(**{"hottest": 1.2, "coldest": 0.1, **changes})


def test_tokens_are_drawn_at_the_annealed_temperature_by_one_program(model):
    run = run_of(model, "ead", "untouched=2", "decay_start=0.1", "decay_growth=0.1")
    state = run.initial_state()
    with compilations("draw_groups") as compiled:
        for step in range(3):
            rollouts = collect(run, state, step).batch.rollouts
            horizon = np.float64(20 * (0.1 + 0.1 * step))
            places = np.arange(rollouts.mask.shape[1])
            wanted = np.asarray(annealed_temperature(places, horizon, 1.2, 0.1, 2))
            heat = np.where(rollouts.mask, rollouts.records["sampled_temperature"], wanted)
            np.testing.assert_allclose(heat, np.broadcast_to(wanted, heat.shape), rtol=FLOAT32)
            assert np.all(rollouts.temperature == 1)
    assert len(compiled) == 1
    assert wanted[0] == wanted[1] == 1 > wanted[2] > wanted[-1]


def test_the_tempered_form_trains_what_was_drawn(model):
    run = run_of(model, "ead", "tempered=True", "untouched=0", "decay_start=0.2")
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    rollouts = batch.rollouts
    np.testing.assert_array_equal(rollouts.temperature, rollouts.records["sampled_temperature"])
    assert np.ptp(rollouts.temperature[rollouts.mask]) > 0.1
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    on = rollouts.mask
    np.testing.assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)


@pytest.mark.slow
def test_it_trains_to_the_end(model, tmp_path):
    config = training_runs.settings(model, tmp_path / "run", method="ead", steps=2)
    training_runs.quietly(replace(config, hyperparameters=("cap=2.0",)))
    told = training_runs.metrics(tmp_path / "run")
    assert "importance_capped_fraction" in str(told[-1])
