"""Prompts that are drawn again at another temperature, to hold the entropy."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from golden_vectors import array
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.arbitrary_entropy import choose_controllers, draw_controllers
from rlvr_jax.runs.step import collect

FLOAT32 = 1e-5  # log-probs of a float32 scorer, of some nats


def walked(steps=3, **settings):
    chain = experience(stages=[draw_controllers(**{"target": 0.5, "fraction": 0.5, **settings})])
    return numpy_actor.walk(chain, steps=steps)


def test_the_first_groups_are_drawn_again_and_marked():
    for found, _, _ in walked():
        rollouts, batch = found.batch.rollouts, found.batch
        assert [len(rows) for rows in batch.groups] == [8, 8, 4, 4]
        for place, rows in enumerate(batch.groups):
            assert_array_equal(
                rollouts.records["off_policy"][rows], ([False] * 4 + [True] * 4)[: len(rows)]
            )
            heat = found.metrics["control_temperature"]
            sampled = rollouts.records["sampled_temperature"][rows[4:]]
            assert np.all(sampled == np.float32(heat)) and (place < 2) == (sampled.size > 0)
        assert np.all(rollouts.temperature == 1)


def test_the_first_step_heats_and_one_above_the_target_cools():
    """The actor's log-probs are some nats, so that the entropy is above the target from then on."""
    found = walked()
    assert [one.metrics["control_temperature"] for one, _, _ in found] == [1.2, 0.8, 0.8]
    hot = walked(target=100.0)
    assert [one.metrics["control_temperature"] for one, _, _ in hot] == [1.2] * 3
    for _, told, state in found:
        assert told["entropy_of_update"] == pytest.approx(
            float(state["draw_controllers"]["entropy"]), rel=1e-6
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"high": 0}, "draw_controllers: high must be positive, got 0"),
        ({"fraction": 2}, r"draw_controllers: fraction must be in \[0, 1\], got 2"),
        ({"max_samples": 0}, "draw_controllers: max_samples must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        draw_controllers(**{"target": 1.0, **settings})


def settings(policy, *hyperparameters):
    given = ("target=1.0", "fraction=0.5", "max_samples=4", *hyperparameters)
    return training_runs.settings(
        policy, "unused", method="arbitrary_entropy", hyperparameters=given, steps=2
    )


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return training_runs.write_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def run(policy):
    return training_runs.prepared(settings(policy, "top_p=0.8"))


@pytest.mark.thorough
def test_rows_are_drawn_from_the_likeliest_tokens_and_scored_over_all(run):
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    own = rollouts.mask & ~rollouts.records["off_policy"][:, None]
    # What is kept has a mass of 0.8 or more, and less than all.
    mass = np.exp(logp - rollouts.behaviour_logp)[own]
    assert np.all(mass > 0.8 - FLOAT32) and np.all(mass < 1 - FLOAT32)


def test_the_papers_cut_is_the_default():
    name, draw = recipe("arbitrary_entropy").experience.draw
    assert (name, draw.sampling) == ("plain", {"top_p": 0.99})


@pytest.mark.thorough
def test_redrawn_rows_are_scored_at_the_temperature_of_the_others(policy):
    run = training_runs.prepared(settings(policy, "top_p=1"))
    state = run.initial_state()
    batch = collect(run, state, 0).batch
    rollouts = batch.rollouts
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    hot, on = rollouts.records["off_policy"], rollouts.mask
    assert hot.any()
    own = on & ~hot[:, None]
    assert_allclose(rollouts.behaviour_logp[own], logp[own], atol=FLOAT32)
    assert np.abs(rollouts.behaviour_logp - logp)[on & hot[:, None]].max() > 0.01


@pytest.mark.slow
def test_stage_and_objective_agree_about_the_entropy(run, tmp_path):
    """Both estimate it of the rows that were learned from."""
    training_runs.quietly(replace(run.config, run_dir=tmp_path / "run"))
    lines = training_runs.metrics(tmp_path / "run")
    steps = [line for line in lines if "loss" in line]
    assert len(steps) == 2 and sum(line["controllers"] for line in steps) > 0
    for line in steps:
        assert line["experience/entropy_of_update"] == pytest.approx(
            line["entropy_estimate"], abs=FLOAT32
        )
        # Old log-probs of controllers, too, are those at the temperature of the others.
        assert line["ratio/max"] == line["ratio/min"] == 1
    assert steps[0]["experience/control_temperature"] == 1.2


def test_controllers_replace_as_many_own_rows():
    advantage = array([1.0, -1.0, 0.5, 2.0, 0.01, 3.0], np.float64)
    resampled = array([0, 0, 0, 1, 1, 1], bool)
    rollout_id = array([2, 1, 0, 5, 4, 3], np.int32)
    limits = {"threshold": 0.05, "max_samples": 5}
    for too_high, count in ((False, 2), (True, 1)):
        controller, keep = choose_controllers(
            advantage,
            resampled,
            rollout_id,
            jnp.ones(6, bool),
            too_high=jnp.asarray(too_high),
            **limits,
        )
        assert np.asarray(controller).sum() == count
        assert np.asarray(keep).sum() == 3
        assert controller[5] and not keep[2]
