"""SIRL: rewards of a solver, and a KL on the code only."""

import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.sirl_solver import code_tokens, mark_code
from rlvr_jax.tasks import Response, load
from rlvr_jax.types import Rollouts
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.programs.sirl_solver import form, stage_rewards

MODEL = "Maximize\n x\nSubject To\n c: x <= 4\nEnd"


def test_the_code_begins_at_its_last_opening_and_is_the_whole_response_without_one():
    ((collected, _, _),) = numpy_actor.walk(experience(stages=[mark_code("word3")]), steps=1)
    batch = collected.batch
    start = batch.rollouts.records["code_start"]
    found = 0
    for row, response in enumerate(batch.responses):
        words = response.text.split()
        places = [place for place, word in enumerate(words) if word == "word3"]
        assert start[row] == (places[-1] if places else 0)
        found += bool(places)
    assert 0 < found < len(batch)
    assert collected.metrics["code_fraction"] == found / len(batch)


def test_tokens_before_the_code_are_free_of_the_kl():
    batch = Rollouts.of_responses(
        tokens=array(np.zeros((3, 4)), np.int32),
        mask=array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1]], bool),
        reward=array([1.0, 0.0, 0.0], np.float64),
        group=array(np.zeros(3), np.int32),
        code_start=array([2, 0, 1], np.int32),
    )
    wanted = [[0, 0, 1, 1], [1, 1, 1, 0], [0, 0, 1, 1]]
    assert np.asarray(code_tokens(batch, batch.mask)).astype(int).tolist() == wanted


def test_an_empty_opening_is_refused():
    with pytest.raises(ValueError, match=r"opening must be a text that begins the code, got ''"):
        recipe("sirl_solver", code="")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"so\n```lp\n{MODEL}\n```", 2),
        (f"```lp\nx\n```\n```lp\n{MODEL}\n```", 2 - 1 / 8),
        ("```lp\nMaximize\n x\nEnd\n```", 2 - 1 / 4),
        ("```lp\nx\n```", 2 - 3 / 4),
        ("```lp\nSubject To\n c: x <= 4\nMaximize\n x\nEnd\n```", 2 - 1 / 3),
        ("", 0),
        ("no model", 0),
    ],
)
def test_the_form_of_a_response(text, wanted):
    assert form(text) == pytest.approx(wanted, abs=1e-12)


def test_rewards_of_both_stages():
    text = f"```lp\n{MODEL}\n```"
    grade = Grade(1.0, info={"executes": 1.0, "values_hit": 0.5})
    assert stage_rewards(text, grade) == {"stage_1": 1 + 0.5 * 2 + 1, "stage_2": 1 + 1 + 0.5}
    wrong = Grade(0.0, info={"executes": 1.0})
    assert stage_rewards(text, wrong) == {"stage_1": 0.5 * 2 + 1, "stage_2": 1}
    assert stage_rewards("", Grade(None)) == {"stage_1": 0, "stage_2": 0}


def test_a_gold_answer_of_the_task_has_all_rewards():
    pytest.importorskip("highspy")
    task = load("optimisation:size=5,test_size=5")
    assert task.rewards == ("outcome", "stage_1", "stage_2")
    grades = task.verify(task.train, [Response(prompt.gold) for prompt in task.train])
    assert [(g.info["stage_1"], g.info["stage_2"]) for g in grades] == [(3, 3)] * 5
    (missing,) = task.verify(task.train[:1], [Response("none")])
    assert (missing.outcome, missing.info["stage_1"], missing.info["stage_2"]) == (0, 0, 0)
