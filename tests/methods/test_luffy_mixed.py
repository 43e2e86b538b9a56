"""LUFFY: worked solutions stand in groups, graded and marked."""

import dataclasses

import pytest
import training_runs
from everyday import everyday
from walks import walked

from rlvr_jax.experience import add_traces, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.methods import recipe
from rlvr_jax.runs import TrainConfig


def test_every_group_has_its_solution_behind_its_own_rows():
    for collected, _, _ in walked("luffy_mixed", 3):
        batch, actor = collected.batch, numpy_actor.NumpyActor()
        assert collected.metrics["traces"] == len(batch.groups)
        assert [len(batch) for batch in collected.seen] == [3 * 4]  # the solutions are not drawn
        outcomes = batch.outcomes()
        alone = (outcomes[:, -1] == 1) & (outcomes[:, :-1] == 0).all(axis=1)
        assert collected.metrics["traces_alone"] == alone.sum()
        for rows in batch.groups:
            foreign = batch.rollouts.records["off_policy"][rows]
            assert foreign.tolist() == [False, False, False, True]
            row, solution = rows[-1], batch.prompts[rows[-1]].solution
            wanted = [*actor.encode("".join(solution)), actor.stop_token()]
            length = batch.rollouts.length[row]
            assert batch.rollouts.tokens[row, :length].tolist() == wanted
            assert batch.rollouts.mask[row].sum() == length
            assert set(batch.rollouts.records["origin"][row]) == {1}
            assert batch.rollouts.outcome[row] == batch.grades[row].outcome


def test_a_solution_over_the_budget_is_left_out_and_counted():
    class Verbose(numpy_actor.NumpyActor):
        def encode(self, text):
            return [1] * (8 if len(text) % 2 else 3)

    task = numbered_task()
    long = [
        dataclasses.replace(prompt, solution=("a" * (1 + number % 2),))
        for number, prompt in enumerate(task.train)
    ]
    chain = recipe("luffy_mixed").experience
    own = numpy_actor.setting(chain, dataclasses.replace(task, train=long))
    for collected, _, _ in numpy_actor.walk(chain, Verbose(), own=own):
        batch = collected.batch
        short = [len(batch.prompts[rows[0]].solution[0]) == 2 for rows in batch.groups]
        assert [len(rows) for rows in batch.groups] == [4 if there else 3 for there in short]
        assert collected.metrics["traces_too_long"] == 4 - sum(short)


def test_a_wrong_solution_stays():
    for collected, _, _ in walked("luffy_mixed", 3, numpy_actor.NumpyActor(chance=0.0)):
        assert collected.metrics["traces_right"] == 0 < collected.metrics["traces"]
        assert (
            collected.batch.rollouts.mask[collected.batch.rollouts.records["off_policy"]]
            .any(axis=1)
            .all()
        )


def test_groups_need_a_row_of_the_policy():
    with pytest.raises(ValueError, match="per_group must be below the 2 rollouts"):
        experience(stages=[add_traces(2)]).initial_samples(2)
    with pytest.raises(ValueError, match="add_traces: per_group must be at least 1, got 0"):
        add_traces(0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", everyday(["luffy_mixed", "hpt"], "hpt"))
def test_training_learns_from_solutions(name, tmp_path):
    config = TrainConfig.of(
        task="brackets:train=64",
        method=name,
        run_dir=tmp_path,
        steps=2,
        prompts_per_step=4,
        samples_per_prompt=4,
        evaluation_prompts=8,
        evaluation_samples=2,
    )
    training_runs.quietly(config)
    steps = training_runs.metrics(tmp_path)
    assert sum(line.get("experience/traces", 0) for line in steps) > 0
    assert all(
        line["experience/traces_right"] == line["experience/traces"]
        for line in steps
        if "experience/traces" in line
    )
    assert any(line.get("gradient_norm", 0) > 0 for line in steps)


def test_a_task_without_solutions_is_refused_before_anything_is_loaded(tmp_path):
    config = training_runs.settings("nowhere", tmp_path, method="luffy_mixed")
    with pytest.raises(ValueError, match=r"add_traces\(\) reads Prompt.solution, which"):
        training_runs.quietly(config)
