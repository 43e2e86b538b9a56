"""EPO: an entropy bonus for agents, with a penalty for entropies unlike those of the past."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from adapters.common import only
from golden_vectors import array, assert_agrees
from small_environments import Answering, Counting
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.epo import (
    BandState,
    band_penalty,
    banded_entropy_bonus,
    phase_weight,
    step_entropy,
    turn_rows,
)
from rlvr_jax.runs.step import collect
from rlvr_jax.types import Recipe

MASK = array(np.ones((2, 2)), bool)


BAND = {"low": 0.5, "high": 1.5, "size": 0.1}


FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer


@pytest.mark.slow
def test_epo_learns_from_each_step_of_an_episode(tmp_path):
    steps = run_of(tmp_path, "epo", "max_steps=3")
    assert_turns_were_learned_from(steps)
    # A turn is a row, so there are more rows than answers.
    answers, turns = (training_runs.values(steps, f"experience/{n}") for n in ("answers", "turns"))
    assert sum(turns) > sum(answers)


def penalties(env_step, total, count, entropy=1.0):
    state = BandState(array(total, np.float64), array(count, np.int32), array(1, np.int32))
    values = jnp.full((2, 2), entropy)
    return np.asarray(band_penalty(values, MASK, array(env_step, np.int32), state, **BAND))[:, 0]


def test_the_band_is_that_of_the_step_and_waits_for_late_steps():
    assert_agrees(penalties([0, 3], [1, 0, 0, 9], [1, 0, 0, 1]), [0, 0.1])
    assert_agrees(penalties([0, 1], [9, 9, 0, 0], [1, 1, 0, 0]), [0, 0])
    assert_agrees(penalties([0, 1], [0] * 4, [0] * 4), [0, 0])


def test_without_history_everything_is_penalised_and_unseen_steps_are_not():
    assert_agrees(penalties([0, 3], [0] * 4, [0] * 4), [1, 1])
    assert_agrees(penalties([1, 3], [9, 0, 0, 9], [1, 0, 0, 1]), [0, 0.1])


def test_a_hinge_pulls_entropies_back_to_the_band():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    history = np.array([1.0, 1.5, 2.0, 2.5])
    past = BandState(array(history, np.float64), array([1, 1, 1, 1], np.int32), array(0, np.int32))
    part = banded_entropy_bonus(-1.0, 2.0, *BAND.values(), max_steps=4, hinge=True)
    state = {"banded_entropy_bonus": past}
    found = golden.step(only(part).objective, stats, batch, state=state)
    entropy, mask = np.asarray(stats.entropy), np.asarray(batch.mask)
    wanted = history[np.asarray(batch.records["env_step"])][:, None]
    above, below = entropy - 1.5 * wanted, 0.5 * wanted - entropy
    assert (mask & (above > 0)).any() and (mask & (below > 0)).any()
    distance = np.maximum(np.maximum(above, below), 0)
    assert_agrees(found.loss, (entropy - 2 * 0.1 * distance)[mask].mean())
    slope = 1 - 2 * 0.1 * (np.sign(above.clip(0)) - np.sign(below.clip(0)))
    assert_agrees(found.dstats.entropy, np.where(mask, slope, 0) / mask.sum())


def test_steps_without_rows_have_no_entropy():
    mean, there = step_entropy(jnp.ones((2, 2)), MASK, array([0, 0], np.int32), 3)
    assert_agrees(mean, [1, 0, 0])
    np.testing.assert_array_equal(there, [True, False, False])


def test_the_phase_weight_falls_from_one():
    weights = phase_weight(jnp.asarray([0, 150]), 150)
    assert_agrees(weights, [1, 0.8 * np.exp(-3)])


def walked(draw, steps=5):
    return [found for found, _, _ in numpy_actor.walk(experience(draw=draw), steps=steps)]


@pytest.mark.parametrize("world", [Counting(), Counting(judges=True, done_after=2)])
def test_the_rows_of_an_answer_are_its_turns(world):
    several = 0
    for whole, cut in zip(walked(turns(world)), walked(turn_rows(world)), strict=True):
        answers, rows = whole.batch.rollouts, cut.batch.rollouts
        assert whole.metrics == cut.metrics
        for answer in range(len(whole.batch)):
            own = np.flatnonzero(rows.records["trace"] == answer)
            several += len(own) > 1
            np.testing.assert_array_equal(rows.records["env_step"][own], np.arange(len(own)))
            # What is learned of the turns is what is learned of the answer, each token once.
            np.testing.assert_array_equal(rows.mask[own].sum(axis=0), answers.mask[answer])
            for name in ("behaviour_logp", "entropy", "process_reward"):
                if (wanted := answers.get(name)) is not None:
                    told = rows.get(name)[own].sum(axis=0)
                    np.testing.assert_array_equal(told, wanted[answer])
            for row in own:
                end = rows.length[row]
                np.testing.assert_array_equal(rows.tokens[row, :end], answers.tokens[answer, :end])
                assert np.all(
                    rows.records["turn"][row][rows.mask[row]] == 2 * rows.records["env_step"][row]
                )
                told = rows.records["origin"][row, :end][~rows.mask[row, :end]]
                assert set(told.tolist()) <= {2, 3}
            assert rows.length[own[-1]] == answers.length[answer]
            assert np.all(rows.reward[own] == answers.reward[answer])
            assert np.all(rows.truncated[own] == answers.truncated[answer])
    assert several > 5


def test_an_answer_has_no_more_rows_than_turns_are_allowed():
    for found in walked(turn_rows(Counting(), limit=1)):
        assert set(found.batch.rollouts.records["env_step"].tolist()) <= {0, 1}
        assert np.all(np.bincount(found.batch.rollouts.records["trace"]) <= 2)


def test_an_actor_that_writes_nothing_has_rows_all_the_same():
    class Silent(NumpyActor):
        def draw(self, *asked, **how):
            batch = super().draw(*asked, **how)
            none = np.zeros_like(batch.rollouts.length)
            return batch.with_rollouts(length=none, mask=batch.rollouts.mask & False)

    ((found, _, _),) = numpy_actor.walk(experience(draw=turn_rows(Counting())), Silent(), steps=1)
    assert len(found.batch) == found.metrics["answers"]
    assert (
        not found.batch.rollouts.mask.any() and not found.batch.rollouts.records["env_step"].any()
    )


@pytest.mark.thorough
def test_every_row_is_scored_in_the_context_that_its_turn_was_drawn_in(tmp_path):
    policy = training_runs.write_policy(tmp_path)
    config = training_runs.settings(policy, "unused", method=f"{__name__}:cut", response_tokens=10)
    run = training_runs.prepared(config)
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    on = rollouts.mask
    assert rollouts.records["env_step"].max() > 0
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    np.testing.assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)


def cut():
    """GRPO on answers whose turns are rows."""
    chain = experience(draw=turn_rows(Answering(stops=("=",)), limit=3))
    return Recipe(recipe("grpo").objective, chain)
