"""Draws whose temperature moves while a response is written."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import training_runs
from compiling import compilations

from rlvr_jax.experience import StepContext, experience, plain
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.entropy.ead import growing_horizon
from rlvr_jax.methods.entropy.hapo_temperature import entropy_heated, entropy_scale
from rlvr_jax.rollout import annealed, annealed_temperature, entropy_position
from rlvr_jax.runs.step import collect

HEAT = 1e-3  # float32 entropies, divided by what a random model's differ by: a thousandth of a nat
FLOAT32 = 2e-5  # temperatures and log-probs of a float32 sampler, of at most some nats


def run_of(model, method, *hyperparameters):
    config = training_runs.settings(model, "unused", method=method)
    return training_runs.prepared(replace(config, hyperparameters=hyperparameters))


def turn(step):
    own = numpy_actor.setting(experience())
    return StepContext(step, jax.random.key(step), own, lambda count: [])


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


def test_without_a_temperature_nothing_can_be_scored_as_it_was_drawn():
    with pytest.raises(ValueError, match="plain: scored_as_drawn must be False without"):
        plain(scored_as_drawn=True)


def test_tokens_are_drawn_at_the_annealed_temperature_by_one_program(model):
    run = run_of(model, "ead", "untouched=2", "decay_start=0.1", "decay_growth=0.1")
    state = run.initial_state()
    with compilations("draw_groups") as compiled:
        for step in range(3):
            rollouts = collect(run, state, step).batch.rollouts
            horizon = np.float64(20 * (0.1 + 0.1 * step))
            places = np.arange(rollouts.mask.shape[1])
            wanted = np.asarray(annealed_temperature(places, horizon, 1.2, 0.1, 2))
            heat = np.where(rollouts.mask, rollouts.drawn_temperature, wanted)
            np.testing.assert_allclose(heat, np.broadcast_to(wanted, heat.shape), rtol=FLOAT32)
            assert np.all(rollouts.temperature == 1)
    assert len(compiled) == 1
    assert wanted[0] == wanted[1] == 1 > wanted[2] > wanted[-1]


def test_the_tempered_form_trains_what_was_drawn(model):
    run = run_of(model, "ead", "tempered=True", "untouched=0", "decay_start=0.2")
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    rollouts = batch.rollouts
    np.testing.assert_array_equal(rollouts.temperature, rollouts.drawn_temperature)
    assert np.ptp(rollouts.temperature[rollouts.mask]) > 0.1
    logp = run.scorer(state)(rollouts, ["logp"], "current")["logp"]
    on = rollouts.mask
    np.testing.assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)


@pytest.mark.slow
def test_it_trains_to_the_end(model, tmp_path):
    config = training_runs.settings(model, tmp_path / "run", method="ead", steps=2)
    training_runs.quietly(replace(config, hyperparameters=("cap=2.0",)))
    told = training_runs.metrics(tmp_path / "run")
    assert "importance_capped_fraction" in str(told[-1])


def test_the_scale_of_a_batch_is_that_of_its_tokens():
    entropy = np.exp(np.array([[0.0, 1.0, 2.0], [3.0, 9.0, 9.0]]))
    mask = np.array([[True, True, True], [True, False, False]])
    scale = entropy_scale(entropy, mask, pivot=0.67)  # the third of four
    spread = np.sqrt((4 + 1 + 0 + 1) / 4)
    np.testing.assert_allclose(scale, (2, spread, 1 / spread, -2 / spread), rtol=1e-12)


def test_equal_entropies_have_a_scale_without_infinities():
    scale = entropy_scale(np.full((1, 3), 2.0), np.ones((1, 3), bool), pivot=0.8)
    assert np.all(np.isfinite(scale)) and scale.lowest < 0 < scale.highest


def test_the_surest_token_is_drawn_coldest_and_with_the_released_sign_hottest():
    told = dict(center=0.0, spread=1.0, highest=2.0, lowest=-4.0)
    entropy = np.exp(np.array([-9.0, -2.0, 0.0, 1.0, 9.0]))
    for mirrored, wanted in ((False, [-1, -0.5, 0, 0.5, 1]), (True, [1, 0.5, 0, 0.5, 1])):
        found = entropy_position(entropy, **told, mirrored=mirrored)
        np.testing.assert_allclose(found, wanted, atol=1e-5)  # 1e-6 is added to the spread


def test_a_batch_without_tokens_leaves_the_scale():
    draw = entropy_heated(strength=0.05, pivot=0.8)
    chain = experience(draw=draw)
    (found,) = numpy_actor.walk(chain, steps=1)
    learned, state = found[0].batch, found[2]["entropy_heated"]
    nothing = learned.without(np.ones(len(learned), bool))
    again, told = draw.observe(state, turn(1), [], nothing)
    assert again is state and told == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strength": 1.0}, r"entropy_heated: strength must be in \[0, 1\), got 1"),
        ({"pivot": 1.2}, r"entropy_heated: pivot must be in \[0, 1\], got 1.2"),
    ],
)
def test_heat_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        entropy_heated(**{"strength": 0.05, "pivot": 0.8, **changes})


def test_tokens_are_heated_from_the_second_step_on_by_one_program(model):
    run = run_of(model, "hapo_temperature", "strength=0.5")
    state = run.initial_state()
    with compilations("draw_groups") as compiled:
        for step in range(3):
            collected = collect(run, state, step)
            rollouts = collected.batch.rollouts
            on = rollouts.mask
            heat = rollouts.drawn_temperature[on]
            if step == 0:
                assert np.all(heat == 1)
            else:
                scale = state.data["entropy_heated"]["scale"]
                entropy = rollouts.entropy[on].astype(np.float64)
                position = entropy_position(entropy, *scale)
                np.testing.assert_allclose(heat, 1 + 0.5 * np.asarray(position), rtol=HEAT)
                assert np.ptp(heat) > 0.1
            data, _ = run.experience.observe(collected, collected.batch, step, run.setting)
            state = replace(state, data=data)
    assert len(compiled) == 1
