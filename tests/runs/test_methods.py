"""Every method that training can feed takes a whole step, several updates and epochs included."""

import jax
import numpy as np
import pytest
import training_runs

from rlvr_jax import methods, tasks
from rlvr_jax.runs.step import collect
from rlvr_jax.training.learning import learn

# A vocabulary of 14 has no 50 likeliest, rollouts of random weights are all above the entropy where
# one is dropped, subsets of 4 rollouts need groups of more, and right answers are few.
CHANGED = {
    # With a larger step it drops every token.
    "capo_curvature": {"hyperparameters": ("top_k=5",), "learning_rate": 1e-4},
    "gtpo": {"hyperparameters": ("entropy_threshold=10",)},
    "opd": {"hyperparameters": ("teacher=docs/results/guidance/teacher",)},
    "passk_advantage": {"samples_per_prompt": 8},
    # Sums have no tools.
    "ssp": {"hyperparameters": ("max_turns=0",)},
}
# What their parts read sums have not: solutions, hints, words for them, scores of steps.
HINTED = {
    *("adcl_egsr", "g2rpo_a", "gar", "ghpo", "nurl", "opd", "prefix_rl", "prof", "questa"),
    *("reverse_curriculum", "rose", "sdpo", "seele", "srpo", "ssb", "svs"),
}
# They read three rewards.
GRADED = {"rubric_rewards"}
# They train on the task in which they are shown.
SHOWN = {
    *("automated_tool_envs", "carr_cgrpo", "critique_rl", "fission_grpo", "heimdall", "longrlvr"),
    *("retroagent", "salu", "se_bench", "sws"),
}
# They train in tests/methods, on tasks of their own (tools, templates, forms, answers in words) or
# over several steps (the windows of t_ppo).
ELSEWHERE = {
    *(
        "aepo_agentic",
        "affectgpt_r1",
        "br_rm",
        "cog_drift",
        "prompt_augmentation",
        "r1_searcher",
        "retool",
        "rlad",
    ),
    *("rewardmap", "skill0", "t_ppo", "tp_judge", "verltool"),
}


def changes_of(name):
    """Settings of a method beside those of all."""
    if name in HINTED:
        base = tasks.load("hinted_brackets").base_model
        sizes = {"prompts_per_step": 8, "samples_per_prompt": 8, **CHANGED.get(name, {})}
        return {"task": "hinted_brackets:train=64", "model": base, **sizes}
    if name in SHOWN:
        shown = methods.method(name).shown
        given = tuple(f"{key}={value}" for key, value in shown.hyperparameters.items())
        base = tasks.load(shown.task).base_model
        return {"task": shown.task, "model": base, "hyperparameters": given}
    if name in GRADED:
        sizes = {"prompts_per_step": 12, "samples_per_prompt": 6}
        return {"task": "reward_tasks:graded_sums", **sizes, **CHANGED.get(name, {})}
    return CHANGED.get(name, {})


# A statistic of the old policy, state and a term, an estimator that reads the reference.
@pytest.mark.thorough
@training_runs.every_trainable_method("lp_reg", "siren", "ace", without=ELSEWHERE)
def test_a_step_of_several_updates_moves_the_policy(name, model):
    assert_a_step_moves_the_policy(name, model, minibatches=2, epochs=2)


@pytest.mark.thorough
def test_a_step_of_one_update_moves_the_policy(model):
    assert_a_step_moves_the_policy("simko", model)


def assert_a_step_moves_the_policy(name, model, **plan):
    changes = {"model": str(model), **changes_of(name), **plan}
    settings = training_runs.settings(model, "unused", method=name, **changes)
    run = training_runs.prepared(settings)
    state = run.initial_state()
    before = jax.tree.map(np.asarray, state.device.params)
    batch = collect(run, state, 0).batch
    after, metrics, records = learn(run.learner, state.device, batch.rollouts, 0)
    assert np.isfinite([metrics["loss"], metrics["gradient_norm"]]).all()
    assert all(np.isfinite(values).all() for values in records.values())
    assert int(after.updates) == settings.plan.updates
    moved = jax.tree.map(lambda now, then: np.any(np.asarray(now) != then), after.params, before)
    assert any(jax.tree.leaves(moved))
