"""RoRecomp: what goes first, what waits, and with which records it is learned from later."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.rorecomp import estimator, priority_rows
from rlvr_jax.objectives import (
    group_normalized,
    importance_weighted,
    objective,
    reward_to_go,
    token_mean,
    whitened,
)
from rlvr_jax.types import Rollouts

PRINTED = 1e-6
"""As many digits as the examples print."""


def test_short_right_and_long_wrong_rows_go_first_and_ties_stay_in_order():
    outcome = np.array([1, 1, 1, 0, 0, 1, 0, 0])
    length = np.array([5, 3, 3, 2, 9, 4, 7, 7])
    group = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    first = priority_rows(outcome, length, group, 0.5)
    assert np.flatnonzero(first).tolist() == [1, 2, 4, 5, 6]
    assert priority_rows(outcome, length, group, 1.0).all()


def key_of(batch, row):
    return batch.requests[row].number, batch.rollouts.tokens[row].tobytes()


def test_every_row_is_learned_from_once_in_the_order_it_was_drawn():
    chain = recipe("rorecomp").experience
    found = numpy_actor.walk(chain, steps=8)
    waiting, later = [], []
    for collected, _, state in found:
        (sampled,) = collected.seen
        batch, rollouts = collected.batch, sampled.rollouts
        first = priority_rows(rollouts.outcome, rollouts.length, rollouts.group, 0.5)
        rows = [key_of(batch, row) for row in range(len(batch))]
        assert rows == [key_of(sampled, row) for row in np.flatnonzero(first)]
        waiting += [key_of(sampled, row) for row in np.flatnonzero(~first)]
        for more in batch.further:
            later += [key_of(more, row) for row in range(len(more))]
            assert more.rollouts.records["stored"].all() and len(more) == len(sampled)
        assert state["recompose"].held == len(waiting) - len(later)
    assert later and later == waiting[: len(later)]


@pytest.mark.thorough
def test_what_waits_keeps_its_advantage_and_old_log_probs():
    chain, actor = recipe("rorecomp").experience, numpy_actor.NumpyActor()
    known = {}
    acted = 0
    for collected, _, _ in numpy_actor.walk(chain, actor, steps=8):
        (sampled,) = collected.seen
        advantage = estimator(group_normalized())(sampled.rollouts)
        logp = actor.score(sampled, ["logp"])["logp"]
        for row in range(len(sampled)):
            known[key_of(sampled, row)] = advantage[row], logp[row], sampled.rollouts.mask[row]
        for batch in (collected.batch, *collected.batch.further):
            for row in range(len(batch)):
                wanted, old, mask = known[key_of(batch, row)]
                np.testing.assert_array_equal(batch.rollouts.records["advantage"][row], wanted)
                np.testing.assert_array_equal(batch.rollouts.mask[row], mask)
                if "stored" in batch.rollouts.records:
                    np.testing.assert_array_equal(batch.rollouts.old_logp[row], old)
                    acted += 1
    assert acted > 0


def test_an_advantage_of_the_policy_and_an_empty_share_are_refused():
    with pytest.raises(ValueError, match=r"rorecomp: fraction must be in \(0, 1\], got 0"):
        recipe("rorecomp", fraction=0.0)
    with pytest.raises(ValueError, match="estimator: advantage must read no statistic of a policy"):
        estimator(reward_to_go(kl_coefficient=0.1))


def test_an_objective_that_finds_an_advantage_keeps_it_when_it_decides_once():
    batch = golden.rollouts("b")
    brought = batch.replace(advantage=jnp.where(batch.mask, 0.25, 0.0))
    made = objective(
        whitened(group_normalized()), surrogate=importance_weighted(), aggregation=token_mean()
    )
    decided, _, _ = made.decide_once(brought, made.init(golden.spec(batch)), jax.random.key(0))
    golden.assert_agrees(decided.records["advantage"], brought.records["advantage"])


@pytest.mark.parametrize("minibatches", [1, 2])
@pytest.mark.slow
def test_training_takes_further_updates(tmp_path, minibatches):
    """The kept rows are a batch, which is split into as many updates as any other."""
    folder = training_runs.write_policy(tmp_path / "policy")
    config = training_runs.settings(
        folder,
        tmp_path / "run",
        method="rorecomp",
        steps=6,
        prompts_per_step=8,
        minibatches=minibatches,
    )
    training_runs.quietly(config)
    steps = [
        line for line in training_runs.metrics(tmp_path / "run") if "experience/stored_rows" in line
    ]
    assert sum(line["experience/compensation_rows"] for line in steps) > 0
    assert all(
        line["further/updates"] == minibatches
        for line in steps
        if line["experience/compensation_rows"]
    )


def test_a_row_without_a_score_leaves_its_group_as_the_sheet_says():
    batch = Rollouts.of_responses(
        np.ones((4, 1), np.int32),
        np.ones((4, 1), bool),
        np.array([2.0, 4.0, 9.0, 0.0]),
        np.array([0, 0, 0, 1]),  # as `shape` sees a row without a reward
        behaviour_logp=np.zeros((4, 1)),
    )
    found = estimator(group_normalized(1e-12))(batch)[:, 0]
    np.testing.assert_allclose(found, [-0.83205, -0.27735, 1.1094, 0], atol=PRINTED)
