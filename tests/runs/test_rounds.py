"""Batches that are filled in rounds, and a reward that is not finite."""

import dataclasses

import numpy as np
import pytest
import training_runs

from rlvr_jax.experience import experience, refill, uniform
from rlvr_jax.runs.step import collect
from rlvr_jax.tasks import Grade
from rlvr_jax.types import replace


def graded_by(model, rule, **changes):
    """A prepared run of DAPO whose grade is rule(prompt, number of the rollout in its group)."""

    def verify(prompts, responses):
        del responses
        grades = [rule(p, number % 4) for number, p in enumerate(prompts)]
        return [g if isinstance(g, Grade) else Grade(float(g)) for g in grades]

    run = training_runs.prepared(training_runs.settings(model, "unused", method="dapo", **changes))
    task = dataclasses.replace(run.task, verify=verify)
    return replace(run, start=replace(run.start, sampler=replace(run.start.sampler, task=task)))


def test_dynamic_sampling_fills_the_batch_with_mixed_groups(model):
    run = graded_by(model, lambda prompt, number: prompt.kind == "large" and number == 0)
    found = collect(run, run.initial_state(), 0)
    batch, metrics = found.batch, found.metrics
    assert [prompt.kind for prompt in batch.prompts] == ["large"] * 16
    assert batch.rollouts.group.tolist() == np.repeat(range(4), 4).tolist()
    assert batch.rollouts.rollout_id.tolist() == list(range(16))
    assert batch.rollouts.mask.any(1).all()
    assert (
        metrics["experience/refill/rounds"] > 1
        and metrics["experience/refill/filled_with_dropped"] == 0
    )
    # Curves show all sampled rows, not only the selected ones.
    assert 0 < metrics["outcome"] < 0.25
    np.testing.assert_allclose(
        metrics["outcome"], metrics["experience/refill/accepted_fraction"] / 4
    )


def test_dropped_groups_that_fill_a_batch_are_masked(model):
    wanted = "1 + 2 ="
    run = graded_by(model, lambda prompt, number: prompt.text == wanted and number == 0)
    chain = experience(stages=[refill(uniform, rounds=4)])
    setting = replace(run.setting, rounds=chain.rounds)
    run = replace(run, recipe=replace(run.recipe, experience=chain), setting=setting)
    found = collect(run, run.initial_state(), 0)
    batch, metrics = found.batch, found.metrics
    kept = np.array([prompt.text == wanted for prompt in batch.prompts])
    # Four rounds of four are one epoch of the fifteen prompts.
    assert kept.sum() == 4 and metrics["experience/refill/filled_with_dropped"] == 3
    np.testing.assert_array_equal(batch.rollouts.mask.any(1), kept)
    assert batch.rollouts.length.all()
    assert metrics["experience/refill/rounds"] == 4
    assert metrics["sampled_rollouts"] == 4 * len(batch.prompts)


def test_every_round_draws_other_prompts(model):
    sampled = []

    def rule(prompt, number):
        sampled.append(prompt.text)
        return False

    run = graded_by(model, rule)
    collect(run, run.initial_state(), 0)
    # Ten rounds of four prompts, started at ten places of an epoch of fifteen.
    assert set(np.unique(sampled, return_counts=True)[1] // 4) == {2, 3, 4}
    assert len(set(sampled)) == 15


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e39])
def test_a_reward_that_is_not_finite_names_prompt_and_response(model, value):
    run = graded_by(model, lambda _, number: Grade(0.0, reward=value if number == 3 else 0.0))
    with pytest.raises(ValueError, match=r"reward must be finite in float32, .* '\d \+ \d =' and"):
        collect(run, run.initial_state(), 0)
