"""HAPO's adaptive temperature: sample uncertain tokens a little hotter, certain ones colder."""

from dataclasses import replace

import numpy as np
import pytest
from compiling import compilations
from temperature_runs import run_of, turn

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.entropy.hapo_temperature import entropy_heated, entropy_scale
from rlvr_jax.rollout import entropy_position
from rlvr_jax.runs.step import collect

HEAT = 1e-3  # float32 entropies, divided by what a random model's differ by: a thousandth of a nat


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


@pytest.mark.thorough
def test_tokens_are_heated_from_the_second_step_on_by_one_program(model):
    run = run_of(model, "hapo_temperature", "strength=0.5")
    state = run.initial_state()
    with compilations("draw_groups") as compiled:
        for step in range(3):
            collected = collect(run, state, step)
            rollouts = collected.batch.rollouts
            on = rollouts.mask
            heat = rollouts.records["sampled_temperature"][on]
            if step == 0:
                assert np.all(heat == 1)
            else:
                scale = state.host.data["entropy_heated"]["scale"]
                entropy = rollouts.entropy[on].astype(np.float64)
                position = entropy_position(entropy, *scale)
                np.testing.assert_allclose(heat, 1 + 0.5 * np.asarray(position), rtol=HEAT)
                assert np.ptp(heat) > 0.1
            data, _ = run.experience.observe(collected, collected.batch, step, run.setting)
            state = replace(state, host=replace(state.host, data=data))
    assert len(compiled) == 1
