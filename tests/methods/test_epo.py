"""EPO: an entropy bonus for agents, with a penalty for entropies unlike those of the past."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from adapters.common import only
from golden_vectors import array, assert_agrees
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.methods.agents.epo import (
    BandState,
    band_penalty,
    banded_entropy_bonus,
    phase_weight,
    step_entropy,
)

MASK = array(np.ones((2, 2)), bool)


BAND = {"low": 0.5, "high": 1.5, "size": 0.1}


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
    part = banded_entropy_bonus(-1.0, smooth=2.0, **BAND, steps=4, hinge=True)
    state = {"banded_entropy_bonus": past}
    found = golden.step(only(part).objective, stats, batch, state=state)
    entropy, mask = np.asarray(stats.entropy), np.asarray(batch.mask)
    wanted = history[np.asarray(batch.env_step)][:, None]
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
