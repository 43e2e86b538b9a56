"""Agent-RLVR: pairs of a success and a failure, guided where nothing succeeded."""

import dataclasses

import golden_vectors as golden
import numpy as np
import pytest
import training_runs
from golden_vectors import array
from turn_runs import assert_turns_were_learned_from, run_of

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.views import NOTE, YOUR_TURN
from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.agent_rlvr import guidance
from rlvr_jax.objectives.regularizers.preferences import first_pairs
from rlvr_jax.types import Rollouts, TokenStats

DIGITS = 1e-8
"""Half of the last digit of a number with nine of them."""


OUTCOME = [0, 0, 1, 0, 1, 1, 0, 1, 1]


GUIDED = [0, 0, 1, 1, 0, 0, 0, 1, 0]


GROUP = [0, 0, 0, 0, 1, 1, 2, 2, 2]


def pairs_of(order):
    """(chosen, rejected) by group, of rows in another order."""
    correct, later = (array(np.array(x)[order], bool) for x in (OUTCOME, GUIDED))
    group = array(np.array(GROUP)[order], np.int32)
    where = array(np.ones(9), bool)
    partner = np.asarray(first_pairs(correct, group, array(order, np.int32), where, later))
    found = {}
    for row in np.flatnonzero(partner >= 0):
        assert partner[partner[row]] == row
        if correct[row]:
            found[int(group[row])] = int(order[row]), int(order[partner[row]])
    return found


@pytest.mark.thorough
def test_the_pair_of_a_task_is_its_first_success_and_its_first_failure():
    assert pairs_of(np.arange(9)) == {0: (2, 0), 2: (8, 6)}


def test_pairs_do_not_depend_on_where_rows_lie():
    random = np.random.default_rng(0)
    for _ in range(5):
        assert pairs_of(random.permutation(9)) == {0: (2, 0), 2: (8, 6)}


def batch_of(outcome):
    """Rows of two tokens whose reference log-probs add up to -12 and -7.5."""
    return Rollouts.of_responses(
        np.ones((2, 2), np.int32),
        np.ones((2, 2), bool),
        np.array(outcome),
        np.zeros(2),
        reference_logp=np.array([[-6.0, -6.0], [-3.75, -3.75]]),
        off_policy=np.array([True, False]),
    )


def loss_and_slope(batch):
    stats = TokenStats(logp=array([[-5.0, -5.0], [-4.0, -4.0]], float))
    found = golden.step(recipe("agent_rlvr").objective, stats, batch)
    return found.loss, found.dstats.logp


def test_the_loss_is_that_of_the_worked_example():
    loss, slope = loss_and_slope(batch_of([1.0, 0.0]))
    np.testing.assert_allclose(loss, 0.575939420, atol=DIGITS)
    wanted = [[-0.043782350] * 2, [0.043782350] * 2]
    np.testing.assert_allclose(slope, wanted, atol=DIGITS)


def test_without_a_pair_nothing_is_learned():
    loss, slope = loss_and_slope(batch_of([0.0, 0.0]))
    assert loss == 0 and not np.asarray(slope).any()


def test_one_more_attempt_with_guidance_is_scored_under_the_plain_prompt():
    chain, actor = recipe("agent_rlvr").experience, numpy_actor.NumpyActor(chance=0.1)
    guided = 0
    for collected, _, _ in numpy_actor.walk(chain, actor):
        batch, rollouts = collected.batch, collected.batch.rollouts
        first = collected.seen[0].outcomes()
        sizes = [len(rows) for rows in batch.groups]
        assert sizes == [4 + (not row.any()) for row in first]
        views = np.array([request.view.label for request in batch.requests])
        np.testing.assert_array_equal(rollouts.records["off_policy"], views != "plain")
        plain, _ = actor.prompts(
            [dataclasses.replace(a, view=batch.requests[0].view) for a in batch.requests]
        )
        np.testing.assert_array_equal(rollouts.prompt_tokens, plain)
        later = rollouts.records["off_policy"]
        if later.any():
            solved = collected.metrics["redrawn_solved"]
            assert solved == (rollouts.outcome[later] == 1).mean()
        guided += int(later.sum())
    assert guided > 0


@pytest.mark.parametrize(
    ("hints", "shown"),
    [(("look", "there"), True), (("first second third fourth fifth",), False)],
)
def test_guidance_that_holds_the_solution_is_not_used(hints, shown):
    task = numbered_task()
    solution = ("first second third ", "fourth fifth")
    prompt = dataclasses.replace(task.train[0], hints=hints, solution=solution)
    text = guidance(4).show(prompt, task).text
    assert (text != prompt.text) == shown and ("look\nthere" in text) == shown


@pytest.mark.slow
def test_training_makes_pairs_with_guided_successes(tmp_path):
    steps = training_runs.on_brackets("agent_rlvr", tmp_path)
    assert max(training_runs.values(steps, "experience/redrawn_fraction")) > 0
    assert max(training_runs.values(steps, "paired_groups")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.slow
def test_agent_rlvr_tries_again_in_turns_with_guidance(tmp_path, monkeypatch):
    words = f"{NOTE}{YOUR_TURN}".split()
    monkeypatch.setattr(training_runs, "WORDS", [*training_runs.WORDS, *words])
    task = "small_environments:hinted_sums"
    often = {"prompts_per_step": 12, "samples_per_prompt": 2}
    steps = run_of(tmp_path, "agent_rlvr", "max_turns=2", task=task, steps=2, **often)
    # Guided attempts are learned from without the guidance.
    assert_turns_were_learned_from(steps, as_sampled=False)
    assert max(training_runs.values(steps, "experience/redrawn_fraction")) > 0
    assert max(training_runs.values(steps, "paired_groups")) > 0
