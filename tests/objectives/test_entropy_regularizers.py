"""Entropy that is anchored, kept in a band, or steered by a second sampler."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import only
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.agents.epo import (
    BandState,
    band_penalty,
    banded_entropy_bonus,
    phase_weight,
    step_entropy,
)
from rlvr_jax.methods.entropy.arbitrary_entropy import choose_controllers
from rlvr_jax.methods.entropy.siren import anchored_entropy, peak_entropy
from rlvr_jax.objectives import UpdatePlan

MASK = array(np.ones((2, 2)), bool)
BAND = {"low": 0.5, "high": 1.5, "size": 0.1}


def test_the_first_batch_is_the_anchor_and_the_second_is_pulled_back():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    own = only(anchored_entropy(1.0)).objective
    first = golden.step(own, stats, batch)
    assert first.loss == 0
    moved = stats.replace(nucleus_entropy=stats.records["nucleus_entropy"] + 0.5)
    second = golden.step(own, moved, batch, state=first.state)
    assert second.loss > 0 and np.asarray(second.dstats.records["nucleus_entropy"]).sum() > 0
    anchor = second.state["anchored_entropy"].anchor
    assert_agrees(anchor, first.state["anchored_entropy"].anchor)


def test_the_anchor_of_a_batch_in_parts_is_their_mean():
    batch, stats = golden.rollouts("b"), golden.stats("b")
    own = only(anchored_entropy(1.0, anchor_updates=2)).objective
    step = golden.step(own, stats, batch)
    moved = stats.replace(nucleus_entropy=stats.records["nucleus_entropy"] + 0.5)
    found = [step := golden.step(own, moved, batch, state=step.state) for _ in range(2)]
    assert found[0].loss == 0
    first, second = (
        peak_entropy(s.records["nucleus_entropy"], batch, 0.8)[0] for s in (stats, moved)
    )
    assert_agrees(found[1].metrics["entropy_anchor"], (first + second) / 2)
    assert_agrees(found[1].loss, ((second - first) / 2) ** 2)
    assert own.remarks(UpdatePlan(updates_per_batch=2, group_size=4)) == []
    (remark,) = only(anchored_entropy(1.0)).objective.remarks(UpdatePlan(2, 4))
    assert "one of 2 of a batch" in remark


def test_equal_entropies_have_no_peak_and_empty_rows_count_as_zero():
    batch = golden.rollouts("b")
    mean, peaks = peak_entropy(jnp.ones_like(batch.entropy), batch, 0.8)
    assert mean == 0 and not np.asarray(peaks).any()
    none, _ = peak_entropy(batch.entropy, batch.replace(mask=batch.mask & False), 0.8)
    assert none == 0


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
