"""A comparison in two turns: the second one reads the first, and the rule on both."""

import numpy as np
import pytest
import training_runs

from rlvr_jax import tasks
from rlvr_jax.methods.exploration.rorecomp import estimator
from rlvr_jax.objectives import group_normalized
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks import Response
from rlvr_jax.types import Rollouts
from rlvr_jax.verifiers.texts.br_rm import RETHINK, reward

PRINTED = 2e-6
"""As many digits as the example prints."""

TURN = "[dimensions]accuracy\nstyle[/dimensions][analysis]issue[/analysis]"


@pytest.mark.parametrize(
    ("malformed", "wanted"),
    [(-100.0, [0.361628, 0.333265, -2.474671]), (-2.0, [0.661437, -0.661437, -1.984311])],
)
def test_one_malformed_answer_hides_correct_from_incorrect(malformed, wanted):
    turns = [*5 * ["[preference]1[/preference]"], *2 * ["[preference]2[/preference]"], "the first"]
    earned = [reward(TURN, turn, "1", malformed) for turn in turns]
    assert earned == [*5 * [0], *2 * [-1], malformed]
    batch = Rollouts.of_responses(
        np.ones((8, 1), np.int32),
        np.ones((8, 1), bool),
        np.array(earned, float),
        np.zeros(8, int),
        behaviour_logp=np.zeros((8, 1)),
    )
    found = estimator(group_normalized(1e-6))(batch)[[0, 5, 7], 0]
    np.testing.assert_allclose(found, wanted, atol=PRINTED)


@pytest.mark.thorough
def test_the_second_turn_reads_the_first_one_and_both_are_trained_on(tmp_path, monkeypatch):
    words = dict.fromkeys([*training_runs.WORDS, *RETHINK.split()])
    monkeypatch.setattr(training_runs, "WORDS", list(words))
    folder = training_runs.write_policy(tmp_path / "policy", max_positions=96)
    given = {"hyperparameters": ("column=1", "turn_tokens=16"), "response_tokens": 64}
    config = training_runs.settings(folder, tmp_path / "run", method="br_rm", **given)
    run = training_runs.prepared(config)
    collected = collect(run, run.initial_state(), 0)
    batch, turn = collected.batch, collected.batch.rollouts.records["turn"]
    second = (turn == 1).any(axis=1)
    assert collected.metrics["experience/second_turns"] == second.sum() > 0
    assert all(RETHINK in batch.responses[row].text for row in np.flatnonzero(second))
    np.testing.assert_array_equal(batch.rollouts.mask, (turn == 0) | (turn == 2))
    assert (turn[second] == 2).any(axis=1).all()


def test_a_policy_that_cannot_read_the_second_request_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"view requesting.*got 'Read'.* cannot read"):
        training_runs.on_brackets("br_rm", tmp_path / "run", "brackets:train=8")


def test_a_pair_of_the_task_has_one_correct_sum_and_both_turns_are_graded():
    task = tasks.load("preferences:size=40,test_size=4")
    assert {prompt.answer for prompt in task.train} == {"1", "2"}
    for prompt in task.train:
        first, second = (
            text.split("response:\n")[1].split(".")[0] for text in prompt.text.split("\n\n")[1:3]
        )
        correct = [eval(text.replace("=", "==")) for text in (first, second)]
        assert correct == [prompt.answer == "1", prompt.answer == "2"]
    other = prompt.gold[:-14].removesuffix(prompt.answer) + "12"[prompt.answer == "1"]
    texts = [prompt.gold, f"{other}[/preference]", prompt.gold.split(RETHINK)[0]]
    grades = task.verify([prompt] * 3, [Response(text) for text in texts])
    assert [(grade.outcome, grade.info["format"]) for grade in grades] == [(1, 1), (0, 1), (0, 0)]
