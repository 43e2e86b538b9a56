"""Absolute Zero: the policy proposes programs with inputs, and solves for the missing part."""

import golden_vectors as golden
import jax
import numpy as np
import pytest
import training_runs
from celled_rows import cells
from golden_vectors import array, assert_agrees

from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task
from rlvr_jax.experience.store import as_bytes, empty_store, push
from rlvr_jax.methods import recipe
from rlvr_jax.methods.self_play.absolute_zero import cell_of, to_solve, whitened_by_cell
from rlvr_jax.objectives import importance_weighted, objective, plain_reward, token_mean, whitened
from rlvr_jax.tasks.worlds.expressions import EXPRESSIONS
from rlvr_jax.tasks.worlds.triplets import KINDS, Triplet, is_proposal, verify_in
from rlvr_jax.types import replace

WORDS = ["4", "x + 1 ; 3", "x * 2 ; 5", "x + 1", "x + 1 ; 1 2 3 4", "3", "x -"]


class Speaker(numpy_actor.NumpyActor):
    """Says one of some texts by the first token of a row, and is graded by the world."""

    def draw(self, requests, key, sampling=None, constants=None):
        return replace(super().draw(requests, key, sampling, constants), tokenizer=Texts())

    def grade(self, batch):
        grades = verify_in(EXPRESSIONS)(batch.prompts, batch.responses)
        return batch.graded(grades)


class Texts:
    all_special_ids = ()

    def batch_decode(self, rows, **options):
        del options
        return [WORDS[row[0] % len(WORDS)] if row else "" for row in rows]


def walked(steps, prompts=24, world=EXPRESSIONS, **hyperparameters):
    chain = recipe("absolute_zero", **hyperparameters).experience
    task = replace(numbered_task(), world=world)
    own = numpy_actor.setting(chain, task, prompts=prompts, samples=1)
    return numpy_actor.walk(chain, Speaker(), steps, own=own)


def test_questions_of_the_step_before_are_solved_first():
    def stored(*programs):
        lines = [Triplet(program, (1,), (1,)).text() for program in programs]
        return {"triplet": as_bytes(lines, 2048)}

    store = push(empty_store(8, triplet=((2048,), np.uint8)), stored("x", "1"), 3)
    store = push(store, stored("2"), 4)
    random = np.random.default_rng(0)
    assert to_solve(store, 1, 5, random).tolist() == [2]
    assert to_solve(store, 3, 5, random).tolist()[0] == 2
    assert set(to_solve(store, 40, 7, random).tolist()) == {0, 1, 2}


def test_asks_are_dealt_to_six_cells_and_valid_proposals_are_kept():
    found = walked(6, references=2, solver_samples=3)
    known = [1] * 3
    for collected, told, state in found:
        batch, rollouts = collected.batch, collected.batch.rollouts
        assert [int((rollouts.records["cell"] == cell).sum()) for cell in range(6)] == [4] * 6
        for row, request in enumerate(batch.requests):
            kind = KINDS.index(request.prompt.answer["kind"])
            assert rollouts.records["cell"][row] == cell_of(kind, int(is_proposal(request.prompt)))
            assert request.number >= len(numbered_task().train)
        for number, kind in enumerate(KINDS):
            known[number] += told[f"new/{kind}"]
            assert told[f"known/{kind}"] == state["propose_and_solve"][number].held
            assert state["propose_and_solve"][number].held == known[number]
    assert all(number > 1 for number in known)


def test_a_step_of_fewer_asks_than_cells_leaves_none_out():
    found = walked(3, prompts=4, solver_samples=1)
    cells = [
        cell
        for collected, _, _ in found
        for cell in collected.batch.rollouts.records["cell"].tolist()
    ]
    assert cells == [*range(6), *range(6)]


def test_proposals_earn_by_how_they_are_solved_and_answers_by_being_right():
    learnable = 0
    for collected, _, _ in walked(6, solver_samples=4):
        batch, rollouts = collected.batch, collected.batch.rollouts
        proposed = np.array([is_proposal(request.prompt) for request in batch.requests])
        correct = rollouts.outcome == 1
        readable = np.array([grade.info["readable"] for grade in batch.grades]) == 1
        assert (rollouts.reward[~proposed & correct] == 1).all()
        assert (rollouts.reward[~proposed & ~correct & readable] == -0.5).all()
        assert (rollouts.reward[~readable] == -1).all()
        worth = rollouts.reward[proposed & correct]
        assert (((worth > 0) & (worth < 1)) | (worth == -0.5)).all()
        learnable += int((worth > 0).sum())
        # What was drawn to find that out is not learned from.
        assert len(batch) == 24
        assert {len(rows) for rows in collected.seen[-1].groups} <= {1, 4}
    assert learnable > 0


def test_programs_are_run_where_they_are_graded_alone():
    def again(pairs):
        raise AssertionError("a second run may come to something else, on another process, too")

    once, own = (walked(3, world=world) for world in (EXPRESSIONS, EXPRESSIONS._replace(run=again)))
    assert [told for _, told, _ in once] == [told for _, told, _ in own]
    assert own[-1][1]["known/deduction"] > 1 and own[-1][0].metrics["valid_proposals"] > 0


def test_a_task_without_a_world_is_refused():
    with pytest.raises(ValueError, match="propose_and_solve: task must have a world"):
        chain = recipe("absolute_zero").experience
        chain.init(numpy_actor.setting(chain, replace(numbered_task(), world=None)))


@pytest.mark.slow
def test_training_on_questions_of_its_own(tmp_path):
    steps = training_runs.on_brackets(
        "absolute_zero",
        tmp_path,
        "expressions:size=6,test_size=6",
        steps=3,
        prompts_per_step=24,
        samples_per_prompt=1,
        hyperparameters=("solver_samples=4",),
    )
    assert max(training_runs.values(steps, "experience/valid_proposals")) > 0
    assert max(training_runs.values(steps, "experience/learnable_proposals")) > 0
    for kind in KINDS:
        known = training_runs.values(steps, f"experience/known/{kind}")
        assert known == sorted(known) and known[-1] > 1
    assert max(training_runs.values(steps, "gradient_norm")) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("ddof", [0, 1])
def test_whitening_by_cell_is_whitening_of_each_cell(ddof):
    batch, labels = cells(golden.rollouts("b", True))
    stats = golden.stats("b")

    def advantage(estimator, batch, stats):
        made = objective(estimator, surrogate=importance_weighted(), aggregation=token_mean())
        return np.asarray(golden.step(made, stats, batch).signals.advantage)

    whole = advantage(whitened_by_cell(plain_reward(), ddof), batch, stats)
    for label in (-1, 0, 1):
        own = labels == label
        part = jax.tree.map(lambda v, own=own: array(np.asarray(v)[own], v.dtype), (batch, stats))
        assert_agrees(whole[own], advantage(whitened(plain_reward(), ddof), *part))
