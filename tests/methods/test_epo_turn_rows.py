"""Turns as rows of their own: what is learned of each, and in which context."""

import numpy as np
import pytest
import training_runs
from small_environments import Answering, Counting

from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numpy_actor import NumpyActor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.epo import turn_rows
from rlvr_jax.runs.step import collect
from rlvr_jax.types import Recipe

FLOAT32 = 1e-5  # log-probs of a float32 sampler and scorer


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


def test_every_row_is_scored_in_the_context_that_its_turn_was_drawn_in(tmp_path):
    policy = training_runs.write_policy(tmp_path)
    config = training_runs.settings(policy, "unused", method=f"{__name__}:cut", response_tokens=10)
    run = training_runs.prepared(config)
    state = run.initial_state()
    rollouts = collect(run, state, 0).batch.rollouts
    on = rollouts.mask
    assert rollouts.records["env_step"].max() > 0
    logp = run.scorer(state)(rollouts, ["logp"], "current")["logp"]
    np.testing.assert_allclose(rollouts.behaviour_logp[on], logp[on], atol=FLOAT32)


def cut():
    """GRPO on answers whose turns are rows."""
    chain = experience(draw=turn_rows(Answering(stops=("=",)), limit=3))
    return Recipe(recipe("grpo").objective, chain)
