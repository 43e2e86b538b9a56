"""Multi-domain mixing: several kinds of prompts, level by level, with a reference that is
renewed.
"""

import dataclasses

import jax
import pytest
import training_runs
from walks import walked

from rlvr_jax.experience import Stage, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.multi_domain import level_stage, one_level_at_a_time
from rlvr_jax.runs import TrainConfig
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.hinted_brackets import BASE_MODEL
from rlvr_jax.tasks.rewards import blanks_reward
from rlvr_jax.types import replace


def test_levels_follow_one_another_with_a_refresh_between_them():
    levels = range(3, 9)
    told = [level_stage(step, 175, levels) for step in (0, 174, 175, 176, 1049, 1050)]
    assert told == [(3, False), (3, False), (4, True), (4, False), (8, False), (8, False)]


@pytest.mark.parametrize(
    ("correct", "total", "wanted"), [(3, 5, [0, 0.6, 0.2]), (5, 5, [1, 1, 1]), (0, 5, [0, 0, -1])]
)
def test_rewards_of_blanks(correct, total, wanted):
    forms = ("binary", "share", "signed_share")
    assert [blanks_reward(correct, total, form) for form in forms] == pytest.approx(wanted)
    assert blanks_reward(correct, total, "signed_binary") == 2 * wanted[0] - 1


def test_more_blanks_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"right must be in 0 \.\. total 5 > 0, got 6"):
        blanks_reward(6, 5, "share")


def test_a_step_asks_prompts_of_its_level_alone():
    for step, (collected, told, _) in enumerate(walked("multi_domain", 8, per_level=2)):
        level = min(step // 2, 2)
        assert {prompt.meta["level"] for prompt in collected.batch.prompts} == {level}
        assert told["level"] == level


def test_the_level_of_a_step_is_told_where_a_stage_makes_up_prompts():
    def made_up(batch, actor, state, turn):
        requests = [replace(request, prompt=Prompt("made up")) for request in batch.requests]
        return dataclasses.replace(batch, requests=requests), state, {}

    chain = experience(one_level_at_a_time(2), stages=[Stage(made_up)])
    found = [told for _, told, _ in numpy_actor.walk(chain)]
    assert [told["level"] for told in found] == [0, 0, 1, 1]
    assert [told["levels_passed"] for told in found] == [0, 0, 1, 1]


def test_between_levels_the_policy_becomes_its_reference(tmp_path):
    run = training_runs.prepared(
        TrainConfig.of(
            task="hinted_brackets:train=64",
            method="multi_domain",
            hyperparameters=("per_level=1",),
            model=BASE_MODEL,
            steps=3,
            prompts_per_step=4,
            samples_per_prompt=4,
        )
    )
    state = run.initial_state()
    moved = jax.tree.map(lambda x: x + 1, state.device.params)
    later = replace(state, device=replace(state.device, params=moved))
    kept, fresh = run.prepared(later, 0), run.prepared(later, 1)
    assert kept is later
    same = jax.tree.map(lambda x, y: bool((x == y).all()), fresh.device.reference, moved)
    assert all(jax.tree.leaves(same))
    unlike = jax.tree.map(lambda x, y: bool((x == y).all()), kept.device.reference, moved)
    assert not any(jax.tree.leaves(unlike))


@pytest.mark.slow
def test_training_level_by_level_resumes_with_its_reference(tmp_path):
    given = {"hyperparameters": ("per_level=1", "kl_coefficient=0.1")}
    task = "hinted_brackets:train=64"
    whole = training_runs.on_brackets("multi_domain", tmp_path / "a", task, steps=3, **given)
    training_runs.on_brackets(
        "multi_domain", tmp_path / "b", task, steps=2, checkpoint_every=1, **given
    )
    parts = training_runs.on_brackets(
        "multi_domain", tmp_path / "b", task, steps=3, checkpoint_every=1, resume=True, **given
    )
    levels = training_runs.values(whole, "experience/level")
    assert levels == sorted(levels) and len(set(levels)) == 3
    # The reference is the policy of the step: no divergence in its only update.
    divergence = training_runs.values(whole, "kl_penalty/k3")
    assert max(divergence) < 1e-8
    for name in ("loss", "kl_penalty/k3", "experience/level"):
        assert training_runs.values(parts, name) == training_runs.values(whole, name)
