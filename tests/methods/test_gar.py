"""GAR: rewards the writer of statements for hard provable ones, and the prover for proofs."""

import numpy as np
import pytest
import training_runs
from walks import walked

from rlvr_jax import tasks
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stages.problems.written import WRITE
from rlvr_jax.methods.self_play.gar import adversarial, prover_rewards
from rlvr_jax.tasks import Prompt, Response
from rlvr_jax.tasks.code.lean import read_problem


def test_all_statements_of_a_step_are_compared_and_only_hard_ones_train_the_prover():
    proved = 0
    for collected, _, _ in walked("gar", 8, numpy_actor.NumpyActor(chance=0.3)):
        batch, rollouts = collected.batch, collected.batch.rollouts
        first = batch.groups[0]
        assert (rollouts.records["cell"][first] == WRITE).all() and len(first) == 4
        assert len({batch.requests[row].number for row in first}) == 4
        for rows in batch.groups[1:]:
            assert 0 < rollouts.outcome[rows].mean() <= 0.5
            assert batch.requests[rows[0]].number >= 12 and len(rows) == 4
            proved += 1
        assert ((rollouts.reward[first] >= 0) & (rollouts.reward[first] < 1)).all()
    assert proved > 0


@pytest.mark.slow
def test_training_on_fused_statements(tmp_path):
    steps = training_runs.on_brackets("gar", tmp_path, steps=3)
    assert max(training_runs.values(steps, "experience/fused")) > 0
    assert max(training_runs.values(steps, "gradient_norm")) > 0


def test_a_proof_of_another_statement_is_correct_and_altered():
    task = tasks.load("hinted_brackets:train=8,any_statement=true")
    prompt = Prompt("3 9 4 15 >", answer=[3, 9, 4, 15], kind="hard")
    texts = ["3 * ( 9 - 4 = 5 ) = 15", "( 3 + 9 = 12 ) - 4 = 8", "( 3 + 9 = 12 ) - 4 = 9", "3"]
    grades = task.verify([prompt] * 4, [Response(text) for text in texts])
    assert [grade.outcome for grade in grades] == [1, 1, 0, 0]
    assert [grade.info["altered"] for grade in grades] == [0, 1, 0, 0]
    strict = tasks.load("hinted_brackets:train=8").verify([prompt] * 4, list(map(Response, texts)))
    assert [grade.outcome for grade in strict] == [1, 0, 0, 0]


def test_an_altered_proof_costs_the_prover_and_the_writer():
    # By hand: p = 3/4, m = 1/4.
    assert prover_rewards(np.array([1, 1, 1, 0]), np.array([0, 1, 0, 0]), 0.5).tolist() == [
        *(1, 0.5, 1, 0)
    ]
    assert adversarial(np.array([0.75]), np.array([0.25])).tolist() == [0.1875]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("```lean\ntheorem t (p : Prop) (h : p) : p := h\n```", "(p : Prop) (h : p) : p"),
        ("So ```text\ntheorem other (p : Prop)\n  : p → p\n```", "(p : Prop) : p → p"),
        ("```text\nprove it\n```", None),
        ("theorem t : p", None),
    ],
)
def test_a_written_theorem_is_the_problem_and_its_answer(text, wanted):
    prompt = Prompt("?", {"statement": "theorem t : q", "name": "t"}, "numbers", "gold")
    found = read_problem(prompt, text)
    if wanted is None:
        assert found is None
    else:
        assert found.answer == {"statement": f"theorem t {wanted}", "name": "t"}
        assert found.answer["statement"] in found.text and found.gold is None
