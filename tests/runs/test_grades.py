"""What grades say beside the outcome reaches the objectives that read it, and no others."""

import dataclasses
import math

import numpy as np
import pytest
import training_runs

from rlvr_jax import methods
from rlvr_jax.experience.evaluation import evaluate
from rlvr_jax.experience.grades import check_grades_suffice, with_grades
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks import Grade
from rlvr_jax.training.learning import learn
from rlvr_jax.types import replace


def prepared(model, method, **changes):
    return training_runs.prepared(training_runs.settings(model, "unused", method=method, **changes))


def sampled(run):
    state = run.initial_state()
    return state, collect(run, state, 0).batch


@pytest.fixture(scope="module")
def plain(model):
    """A run of a method that reads the reward alone, and a batch of it."""
    run = prepared(model, "grpo", hyperparameters=("kl_coefficient=0",))
    return run, sampled(run)[1]


def test_equal_answers_have_one_class_and_a_missing_one_its_own(plain):
    run, batch = plain
    answers = ["4", None, "7", "4", None, "7"] + ["0"] * (len(batch.grades) - 6)
    grades = [Grade(0.0, answer=answer) for answer in answers]
    known = with_grades(batch.graded(grades), run.task, {"answer"})
    assert known.rollouts.records["answer"].tolist() == [0, -2, 1, 0, -5, 1] + [2] * (
        len(answers) - 6
    )
    assert "component_rewards" not in known.rollouts.records


def test_rewards_stand_in_the_order_of_the_task(plain):
    run, batch = plain
    grades = [Grade(row % 2, info={"words": row}) for row in range(len(batch.grades))]
    batch = batch.graded(grades)
    task = dataclasses.replace(run.task, rewards=("words", "outcome"))
    rewards = with_grades(batch, task, {"component_rewards"}).rollouts.records["component_rewards"]
    rows = np.arange(len(grades))
    np.testing.assert_array_equal(rewards, np.stack([rows, rows % 2], axis=1))
    assert rewards.dtype == batch.rollouts.reward.dtype


def test_who_does_not_read_them_gets_none(plain):
    rollouts = plain[1].rollouts
    assert "answer" not in rollouts.records and "component_rewards" not in rollouts.records


@pytest.mark.thorough
def test_several_rewards_are_weighed_by_the_method(model):
    advantages = {}
    for weights in ("1,0", "0,1"):
        run = prepared(model, "gdpo", hyperparameters=(f"weights={weights}",))
        state, batch = sampled(run)
        _, _, records = learn(run.learner, state.device, batch.rollouts, 0)
        advantages[weights] = records["advantage"][:, 0]
    size = run.config.sampling.samples_per_prompt
    assert batch.rollouts.mask[:, 0].all()
    for weights, rewards in zip(
        advantages, batch.rollouts.records["component_rewards"].T, strict=True
    ):
        rewards = rewards.reshape(-1, size).astype(np.float64)
        centered = rewards - rewards.mean(1, keepdims=True)
        own = (centered / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)).reshape(-1)
        wanted = (own - own.mean()) / (own.std(ddof=1) + 1e-4)
        assert np.ptp(wanted) > 0
        np.testing.assert_allclose(advantages[weights], wanted, rtol=2e-4, atol=2e-5)


def test_groups_that_earn_the_same_are_neutral_and_come_last(model):
    run = prepared(model, "gdpo", hyperparameters=("weights=1,0.5",))
    update, given = run.programs.update, []

    def recorded(state, rollouts, *others):
        given.append(rollouts.group[:: run.config.sampling.samples_per_prompt].tolist())
        return update(state, rollouts, *others)

    run = replace(run, programs=replace(run.programs, update=recorded))
    state, batch = sampled(run)
    # All of the first group earn the same, of the second the same outcome, of the others neither.
    size, number = run.config.sampling.samples_per_prompt, len(batch.grades)
    rewards = np.stack([np.arange(number) % 2, np.arange(number) % 3], axis=1).astype(np.float32)
    rewards[:size] = 1, 2
    rewards[size : 2 * size, 0] = 1
    rollouts = batch.rollouts.replace(component_rewards=rewards, reward=rewards[:, 0])
    _, _, records = learn(run.learner, state.device, rollouts, 0)
    advantage = records["advantage"][:, 0].reshape(-1, size)
    assert not advantage[0].any() and advantage[1:].any(1).all()
    last = number // size - 1
    assert [groups[last] for groups in given] == [batch.rollouts.group[0]]


@pytest.mark.thorough
def test_groups_whose_answers_disagree_move_less(model):
    run = prepared(model, "seed_grpo", hyperparameters=("entropy_rate=1",))
    state, batch = sampled(run)
    # One answer in the first group, another of each response in the second.
    size = run.config.sampling.samples_per_prompt
    classes = np.arange(len(batch.grades), dtype=np.int32)
    classes[:size] = 0
    outcome = np.tile(np.float32([1, 0]), len(classes) // 2)
    rollouts = batch.rollouts.replace(answer=classes, reward=outcome, outcome=outcome)
    _, _, records = learn(run.learner, state.device, rollouts, 0)
    agreed, open_ = np.abs(records["advantage"][:, 0]).reshape(-1, size)[:2]
    np.testing.assert_allclose(agreed, 0.5, rtol=1e-5)
    assert (open_ < 0.4).all() and (open_ > 0.24).all()


@pytest.mark.parametrize(
    ("method", "field", "nothing"),
    [("gdpo", "rewards", ()), ("seed_grpo", "answers", False)],
)
def test_a_task_that_does_not_tell_is_refused_by_name(method, field, nothing):
    task = training_runs.sums()
    objective = methods.recipe(method).objective
    check_grades_suffice(task, objective, method)
    silent = dataclasses.replace(task, **{field: nothing})
    with pytest.raises(ValueError, match=f"method '{method}' reads .* task 'sums'.*Task.{field}"):
        check_grades_suffice(silent, objective, method)


def test_weights_of_another_number_of_rewards_are_refused_before_anything_is_drawn():
    objective = methods.recipe("gdpo", weights=np.array([1, 1, 1.0])).objective
    with pytest.raises(ValueError, match=r"weigh the 2 rewards of task 'sums' \(outcome, words\)"):
        check_grades_suffice(training_runs.sums(), objective, "gdpo")


def test_a_grade_without_one_of_the_rewards_is_refused(plain):
    run, batch = plain
    task = dataclasses.replace(run.task, rewards=("outcome", "style"))
    with pytest.raises(ValueError, match=r"every grade must have the rewards \['style'\], got"):
        with_grades(batch, task, {"component_rewards"})


def test_an_infinite_reward_is_refused_and_one_that_does_not_apply_kept(plain):
    run, batch = plain
    grades = [Grade(0.0, info={"words": math.nan}) for _ in batch.grades]
    known = with_grades(batch.graded(grades), run.task, {"component_rewards"}).rollouts
    assert np.isnan(known.records["component_rewards"][:, 1]).all()
    grades[3] = Grade(0.0, info={"words": 1e39})
    with pytest.raises(ValueError, match="words must be finite in float32 or NaN, got 1e"):
        with_grades(batch.graded(grades), run.task, {"component_rewards"})


def test_a_number_that_one_grade_tells_counts_as_0_for_the_others(plain):
    run, _ = plain
    told = iter([1.0])

    def verify(prompts, responses):
        return [Grade(0.0, info={"rare": x} if (x := next(told, None)) else {}) for _ in prompts]

    sampler = dataclasses.replace(
        run.start.sampler, task=dataclasses.replace(run.task, verify=verify)
    )
    asked = run.start.test_table, np.arange(4)
    params = run.sampler_params(run.initial_state().device)
    found = evaluate(sampler, params, *asked, 16, run.key("evaluation")).metrics
    # Four calls, of which the first one tells it.
    assert found["held_out/info/rare"] == pytest.approx(1 / 64)


def test_a_number_that_does_not_apply_is_left_out_of_its_curve(plain):
    run, _ = plain

    def verify(prompts, responses):
        values = [math.nan if row % 2 else 3.0 for row in range(len(prompts))]
        return [Grade(0.0, info={"words": value, "none": math.nan}) for value in values]

    task = dataclasses.replace(run.task, verify=verify)
    sampler = dataclasses.replace(run.start.sampler, task=task)
    run = dataclasses.replace(run, start=dataclasses.replace(run.start, sampler=sampler))
    state = run.initial_state()
    asked = run.start.test_table, np.arange(len(run.task.test))
    held_out = evaluate(
        sampler, run.sampler_params(state.device), *asked, 4, run.key("evaluation")
    ).metrics
    for prefix, metrics in ("info", collect(run, state, 0).metrics), ("held_out/info", held_out):
        # A weighted mean of the same number over prompts.
        assert metrics[f"{prefix}/words"] == pytest.approx(3, rel=1e-12)
        assert math.isnan(metrics[f"{prefix}/none"])


def with_verify(run, verify):
    task = dataclasses.replace(run.task, verify=verify)
    sampler = dataclasses.replace(run.start.sampler, task=task)
    return dataclasses.replace(
        run, task=task, start=dataclasses.replace(run.start, sampler=sampler)
    )


@pytest.mark.thorough
def test_a_response_without_a_verdict_is_out_of_the_loss_and_of_its_group(model):
    run = prepared(model, "grpo", hyperparameters=("kl_coefficient=0",))
    size = run.config.sampling.samples_per_prompt
    outcomes = [None, 1.0, *[0.0] * (size - 2)]
    run = with_verify(
        run, lambda prompts, _: [Grade(outcomes[row % size]) for row in range(len(prompts))]
    )
    state, batch = sampled(run)
    _, metrics, records = learn(run.learner, state.device, batch.rollouts, 0)
    valid = batch.rollouts.valid.reshape(-1, size)
    assert not valid[:, 0].any() and valid[:, 1:].all() and batch.rollouts.mask[:, 0].all()
    own = np.array([1.0, *[0.0] * (size - 2)])
    wanted = (own - own.mean()) / own.std(ddof=1)
    advantage = records["advantage"][:, 0].reshape(-1, size)
    np.testing.assert_allclose(advantage[:, 1:], np.tile(wanted, (len(advantage), 1)), rtol=1e-4)
    assert (advantage[:, 0] == 0).all() and np.isfinite(metrics["loss"])
    found = collect(run, run.initial_state(), 0).metrics
    assert found["verifier_no_verdict"] == len(advantage)
    assert found["outcome"] == pytest.approx(1 / (size - 1))


def test_a_selection_judges_a_group_by_its_verdicts(model):
    run = prepared(model, "dapo", hyperparameters=("max_rounds=1", "overlong_factor=0"))
    size = run.config.sampling.samples_per_prompt
    # Groups in turn: right but for no verdict, mixed beside one, no verdict at all.
    groups = [[None, *[1.0] * (size - 1)], [None, 0.0, *[1.0] * (size - 2)], [None] * size]

    def verify(prompts, responses):
        return [Grade(groups[row // size % 3][row % size]) for row in range(len(prompts))]

    metrics = collect(with_verify(run, verify), run.initial_state(), 0).metrics
    number = run.config.sampling.prompts_per_step
    assert metrics["experience/refill/accepted_fraction"] == pytest.approx(
        len(range(1, number, 3)) / number
    )


def test_an_evaluation_counts_no_verdict_and_not_as_right(plain):
    run = with_verify(plain[0], lambda prompts, _: [Grade(None) for _ in prompts])
    asked = run.start.test_table, np.arange(4)
    params = run.sampler_params(run.initial_state().device)
    found = evaluate(run.start.sampler, params, *asked, 16, run.key("evaluation")).metrics
    assert found["held_out/pass@1"] == 0 and found["held_out/verifier_no_verdict"] == 64
