"""Methods that are paid for texts: chats, instructions, lists, routes, steps, verdicts."""

import dataclasses

import numpy as np
import pytest
import text_tasks
import training_runs
from training_runs import trained, values

from rlvr_jax.experience import column, experience, plain_outcome
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.rorecomp import estimator
from rlvr_jax.methods.rewards.instruction_following import product
from rlvr_jax.methods.rewards.rewardmap import kinds_in_order
from rlvr_jax.objectives import group_normalized
from rlvr_jax.tasks import Labelled, Response, with_verdicts
from rlvr_jax.types import Rollouts
from rlvr_jax.verifiers.texts.tp_judge import check_lines

PRINTED = 1e-6
"""As many digits as the examples print."""


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


@pytest.mark.parametrize(
    ("hard", "soft", "reward"),
    [(2 / 3, 1.0, 0.666667), (2 / 3, 0.0, 0.0), (2 / 3, np.nan, np.nan), (1.0, 1.0, 1.0)],
)
def test_hard_and_soft_constraints_are_multiplied(hard, soft, reward):
    batch = Rollouts.of_responses(
        np.ones((1, 1), int),
        np.ones((1, 1), bool),
        np.array([hard]),
        np.zeros(1),
        component_rewards=np.array([[soft]]),
    )
    found, _, told = product({"hard": plain_outcome, "soft": column(0)}).apply(
        batch, ((), ()), None
    )
    np.testing.assert_allclose(found, [reward], atol=PRINTED)
    assert told["reward/hard"] == pytest.approx(hard)


def test_a_reward_model_sees_the_answer_and_its_score_is_learned(model, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("{response} =")
    lines = trained(
        model,
        tmp_path / "run",
        "rlmt",
        task="text_tasks:lists",
        judge="own_judges:longer",
        judge_prompt=str(prompt),
        judge_options=("visible=true",),
    )
    assert np.mean(values(lines, "experience/reward/preference")) > 0
    # Empty answers reach it as a word of their own.
    assert max(values(lines, "experience/judge_no_verdict")) == 0


@pytest.mark.slow
def test_soft_constraints_are_asked_about_where_there_are_any(model, tmp_path):
    lines = trained(
        model,
        tmp_path / "run",
        "instruction_following",
        task="text_tasks:constrained",
        judge="own_judges:kept",
        judge_prompt="constraints",
    )
    asked = values(lines, "experience/judge_asked")
    assert all(0 < count < 16 for count in asked)
    soft = values(lines, "experience/reward/soft")
    assert all(0 < mean < 1 for mean in soft)


@pytest.mark.slow
def test_lists_of_words_are_paid_and_priced(model, tmp_path):
    lines = trained(
        model, tmp_path / "run", "affectgpt_r1", task="text_tasks:lists", response_tokens=1
    )
    accuracy = values(lines, "experience/reward/accuracy")
    assert any(accuracy) and values(lines, "info/reward") == pytest.approx(accuracy, abs=PRINTED)
    assert all(own >= told for own, told in zip(values(lines, "info/f1"), accuracy, strict=True))
    assert values(lines, "experience/reward/format") == [0, 0]


@pytest.mark.slow
def test_routes_are_scored_and_kinds_come_in_order(model, tmp_path):
    changes = dict(hyperparameters=("clip_low=0.2",), prompts_per_step=8)
    lines = trained(model, tmp_path / "run", "rewardmap", task="text_tasks:counts", **changes)
    assert max(values(lines, "experience/reward/score")) > 0


def test_every_prompt_of_a_kind_comes_before_the_next_kind():
    chain = experience(kinds_in_order(["odd"]))
    found = [
        [ask.number for ask in collected.batch.asks[::4]]
        for collected, _, _ in numpy_actor.walk(chain, steps=6)
    ]
    numbers = np.array(found).reshape(-1)
    first, second = numbers[:12], numbers[12:]
    for epoch in (first, second):
        np.testing.assert_array_equal(epoch % 2, [1] * 6 + [0] * 6)
        assert sorted(epoch.tolist()) == list(range(12))
    assert first.tolist() != second.tolist()
    with pytest.raises(ValueError, match="kinds must be those of the train prompts"):
        numpy_actor.walk(experience(kinds_in_order(["none"])), steps=1)


def test_a_prover_reads_steps_and_what_it_cannot_read_is_no_verdict(model, tmp_path):
    found = check_lines("<think>1 = 2</think>1 + 1 = 2\n\n2 * 2 = 5\nx is large")
    assert (found.value, found.stage) == (0.0, "FALSE")
    assert found.info == {"steps": 3, "false_steps": 1}
    lines = trained(
        model,
        tmp_path / "run",
        "tp_judge",
        task="text_tasks:lists",
        hyperparameters=("behind_prompt=true",),
        response_tokens=1,
        samples_per_prompt=16,
    )
    assert all(0 < count < 64 for count in values(lines, "experience/rows_without_reward"))
    assert max(values(lines, "experience/reward/proved")) > 0


@pytest.mark.slow
def test_verdicts_on_solutions_are_prompts_beside_a_tasks_own(tmp_path, monkeypatch):
    words = [*training_runs.WORDS, *text_tasks.VERDICTS]
    monkeypatch.setattr(training_runs, "WORDS", words)
    model = training_runs.write_policy(tmp_path / "policy")
    lines = trained(
        model, tmp_path / "run", "critique_rl", task="text_tasks:judged_sums", prompts_per_step=8
    )
    told = np.array([values(lines, f"outcome/{kind}") for kind in ("verdict", "small")])
    assert told[0].max() > 0 and max(values(lines, "experience/refill/rounds")) > 1


def test_a_verdict_is_right_if_it_is_the_label():
    task = text_tasks.judged_sums()
    verdicts = [prompt for prompt in task.train if prompt.kind == "verdict"][:2]
    assert [prompt.answer for prompt in verdicts] == [True, False]
    told = task.verify(
        [verdicts[0], task.train[0], verdicts[1], verdicts[0]],
        [Response(text) for text in ("\\conclusion{True}", "0", "\\conclusion{True}", "fine")],
    )
    assert [grade.outcome for grade in told][::2] == [1.0, 0.0]
    assert told[3].outcome == 0 and np.isnan(told[3].info["words"])
    assert task.mixture["verdict"] == 0.5 and sum(task.mixture.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("share", "labels", "said"),
    [(1.0, (True, False), "share must be in"), (0.2, (True, True), "solutions of both labels")],
)
def test_verdicts_that_teach_nothing_are_refused(share, labels, said):
    labelled = [Labelled("1 + 1 =", str(n), label) for n, label in enumerate(labels)]
    with pytest.raises(ValueError, match=said):
        with_verdicts(training_runs.sums(), labelled, share)


def test_what_a_method_weighs_is_named_by_its_stages():
    chain = recipe("affectgpt_r1").experience
    task = chain.graded(dataclasses.replace(text_tasks.lists(), rewards=("outcome",)))
    assert list(task.rewards) == ["reward", "f1", "format", "outcome"]
    with pytest.raises(ValueError, match=r"must have names of their own .* got \['reward'\] twice"):
        chain.graded(dataclasses.replace(task, rewards=("reward",)))
