"""MEML-GRPO: experts that are prompts."""

import golden_vectors as golden
import numpy as np
import pytest
import training_runs
from celled_rows import cells
from golden_vectors import array, assert_agrees

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.distillation.meml_grpo import (
    cell_normalized,
    fractions,
    hard_groups,
    teaching_rows,
)
from rlvr_jax.objectives import importance_weighted, objective, token_mean
from rlvr_jax.objectives.statistics.groups import pair_ids


def test_samples_are_split_as_equally_as_they_can_be():
    assert fractions(8, 3) == [3, 3, 2] and fractions(2, 3) == [1, 1, 0]


def test_the_best_expert_teaches_the_worst_with_its_right_rows():
    group = np.array([4, 4, 4, 4, 9, 9, 9, 9])
    cell = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    outcome = np.array([0.0, 0, 1, 0, 1, 0, 1, 0])
    found = teaching_rows(outcome, outcome, group, cell)
    assert found.rows.tolist() == [False, False, True, False] + [False] * 4
    assert found.best.tolist() == [1] * 4 + [0] * 4 and found.worst.tolist() == [0] * 8
    assert hard_groups(outcome.reshape(2, 4), 0.5).tolist() == [True, False]


def test_a_group_holds_the_answers_of_all_experts():
    chain, taught, imitated = recipe("meml_grpo", experts="a|long", capacity=2).experience, 0, 0
    actor = numpy_actor.NumpyActor(chance=0.2)
    for collected, _, _ in numpy_actor.walk(chain, actor, steps=8):
        batch, rollouts = collected.batch, collected.batch.rollouts
        assert [len(rows) for rows in batch.groups] == [4] * 4
        for rows in batch.groups:
            assert rollouts.records["cell"][rows].tolist() == [0, 0, 1, 1]
            assert len({batch.requests[row].number for row in rows}) == 1
        teaching = teaching_rows(
            rollouts.reward, rollouts.outcome, rollouts.group, rollouts.records["cell"]
        )
        np.testing.assert_array_equal(rollouts.records["second_length"] > 0, teaching.rows)
        taught += int(np.sum(teaching.rows))
        for more in batch.further:
            assert more.rollouts.records["supervised"].all() and not more.rollouts.mask.any()
            assert sorted(more.rollouts.records["cell"]) == [0, 0, 1, 1]
            imitated += len(more)
    assert taught > 0 and imitated > 0


@pytest.mark.slow
def test_training_with_experts(tmp_path):
    given = ("experts=|(", "capacity=2", "incorrect_above=0.5")
    steps = training_runs.on_brackets("meml_grpo", tmp_path, hyperparameters=given)
    assert max(training_runs.values(steps, "taught_tokens")) > 0
    assert max(training_runs.values(steps, "experience/imitated_solutions")) > 0
    assert max(training_runs.values(steps, "further/gradient_norm")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


def test_rows_of_a_group_and_cell_are_compared_among_themselves():
    batch, labels = cells(golden.rollouts("b", True))
    reward, group = np.asarray(batch.reward), np.asarray(batch.group)
    made = objective(cell_normalized(), surrogate=importance_weighted(), aggregation=token_mean())
    found = np.asarray(golden.step(made, golden.stats("b"), batch).signals.advantage)
    compared = 0
    for number, label in set(zip(group.tolist(), labels.tolist(), strict=True)):
        own = (group == number) & (labels == label)
        compared += own.sum() > 1
        spread = reward[own].std(ddof=1) if own.sum() > 1 else 0
        wanted = (reward[own] - reward[own].mean()) / (spread + 1e-6)
        mask = np.asarray(batch.mask)[own]
        assert_agrees(found[own], np.where(mask, wanted[:, None], 0))
    assert compared > 0


def test_groups_are_split_by_cell():
    group, cell = array([5, 5, 5, -2, -2], np.int32), array([0, 1, 0, 0, 0], np.int32)
    ids = np.asarray(pair_ids(group, cell))
    assert ids[0] == ids[2] and ids[3] == ids[4] and len({*ids.tolist()}) == 3
