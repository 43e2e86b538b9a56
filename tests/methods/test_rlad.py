"""RLAD: one policy writes abstractions of a problem, and solves it with them in the prompt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_runs
from walks import of_cell, walked

from rlvr_jax.experience.stages.problems.written import SOLVE, WRITE
from rlvr_jax.experience.views import NOTE, YOUR_TURN
from rlvr_jax.methods.self_play.rlad import REQUEST, UNAIDED, abstraction_rewards
from rlvr_jax.objectives import Spec, group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Rollouts, TokenStats

PRINTED = 1e-8  # as many digits as the example prints


@pytest.mark.thorough
def test_abstractions_earn_the_mean_of_their_solutions_and_nothing_for_the_answer():
    outcome = np.array([[[1, 1, 0, 1], [0, 0, 1, 0.0]]])
    told = abstraction_rewards(outcome, np.zeros((1, 2), bool))
    assert told.tolist() == [[0.75, 0.25]]
    assert abstraction_rewards(outcome, np.array([[True, False]])).tolist() == [[0, 0.25]]
    reward = np.concatenate([told.ravel(), outcome.ravel()])
    group = np.repeat([0, 1, 2], [2, 4, 4])
    decided = normalized(reward, group)
    np.testing.assert_allclose(decided[:2], [0.707104781, -0.707104781], atol=PRINTED)
    solver = np.array([0.499999, 0.499999, -1.499997, 0.499999])
    np.testing.assert_allclose(decided[2:6], solver, atol=1e-6)
    np.testing.assert_allclose(decided[6:], -solver[[0, 1, 2, 3]], atol=1e-6)


def normalized(reward, group):
    own = objective(group_normalized(), surrogate=ppo_clip(0.2, 0.2), aggregation=token_mean())
    rows = len(reward)
    batch = Rollouts.of_responses(np.ones((rows, 1), int), np.ones((rows, 1), bool), reward, group)
    logp = jnp.zeros((rows, 1))
    state = own.init(Spec(1, rows, 1))
    return own.signals(TokenStats(logp=logp), batch, state, jax.random.key(0)).advantage[:, 0]


def test_three_kinds_of_rows_are_groups_of_their_own():
    for collected, _, _ in walked("rlad", 4, abstractions=2, unaided=2):
        batch, rollouts = collected.batch, collected.batch.rollouts
        sizes = {WRITE: 2, SOLVE: 2, UNAIDED: 2}
        for rows in batch.groups:
            cell = int(rollouts.records["cell"][rows[0]])
            assert len(rows) == sizes[cell] and (rollouts.records["cell"][rows] == cell).all()
        number = {cell: len(of_cell(batch, cell)) for cell in sizes}
        assert number == {WRITE: 8, SOLVE: 16, UNAIDED: 8}
        assert not rollouts.reward[of_cell(batch, UNAIDED)].any()
        solve = rollouts.outcome[of_cell(batch, SOLVE)].reshape(-1, 2).mean(axis=1)
        written = rollouts.reward[of_cell(batch, WRITE)]
        assert ((written == solve) | (written == 0)).all() and (written > 0).any()


@pytest.mark.slow
def test_training_on_abstractions_of_a_policy_that_reads_the_request(tmp_path, monkeypatch):
    words = dict.fromkeys([*training_runs.WORDS, *f"{REQUEST}{NOTE}{YOUR_TURN}".split()])
    monkeypatch.setattr(training_runs, "WORDS", list(words))
    folder = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    sizes = {"prompts_per_step": 8, "samples_per_prompt": 16}
    steps = training_runs.trained(folder, tmp_path / "run", "rlad", **sizes)
    assert max(training_runs.values(steps, "experience/abstraction_reward")) > 0
