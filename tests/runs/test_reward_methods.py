"""Methods that change the reward train end to end, and their parts act."""

import numpy as np
import pytest
import training_runs
from everyday import everyday

from rlvr_jax.runs.step import take_step

# By method: hyperparameters beside the defaults, and curves of which each moves in some step.
CASES = {
    "overlong_shaping": ((), ["reward/overlong"]),
    "length_rewards": ((), ["reward/cosine"]),
    "empo": ((), ["answer_entropy", "majority_fraction"]),
    "intrinsic_rewards": ((), []),
    "spurious_rewards": ((), []),
    "medgrpo": (("column=1",), ["reward/metric", "reward/median"]),
    "rlsp": ((), ["reward/exploration", "reward/outcome"]),
    "designing_rewards": ((), []),
    "gen_prm_thoughts": ((), []),
    "arena_rl": ((), ["compared_pairs", "correct_wins"]),
    "think_rm": ((), ["compared_pairs", "correct_wins"]),
    "meta_policy": (("maxima=1,1,1",), ["criterion/0", "criterion/2"]),
    "rlbff": (("number=1",), ["reward/odds"]),
    "rlpr": ((), ["reward/likelihood", "reward/base", "group_spread"]),
    "rep_exploration": ((), ["reward/outcome", "reward/novelty"]),
    "rlfr": ((), []),
    "rgr_grpo": (("weights=0.5,0.3,0.2",), ["refined_fraction", "criterion/1"]),
    "rubric_rewards": (("veto=2",), ["criterion/0", "criterion/1", "veto/2"]),
}
OF_OBJECTIVE = {
    "intrinsic_rewards": ["certainty"],
    "designing_rewards": ["process_reward", "process_reward/incorrect"],
    "gen_prm_thoughts": ["process_reward"],
    "rlfr": ["process_reward"],
}
# Settings of the run beside those of all: what is shown of a response must fit into a prompt.
RUN = {"rgr_grpo": {"prompt_tokens": 24}}
FAST = {"empo"}
marked = everyday(CASES, *FAST)


@pytest.mark.thorough
@pytest.mark.parametrize("name", marked)
def test_training_shows_the_parts_of_the_reward(name, model):
    hyperparameters, curves = CASES[name]
    settings = training_runs.settings(
        model,
        "unused",
        task="reward_tasks:graded_sums",
        method=name,
        hyperparameters=hyperparameters,
        samples_per_prompt=6,
        **RUN.get(name, {}),
    )
    run = training_runs.prepared(settings)
    state, steps = run.initial_state(), []
    for step in range(2):
        taken = take_step(run, state, step)
        state = taken.state
        steps.append(taken.metrics)
    assert np.isfinite([told["loss"] for told in steps]).all()
    assert any(told["gradient_norm"] > 0 for told in steps)
    assert any(told["verifier_no_verdict"] > 0 for told in steps)
    for curve in curves:
        values = [told.get(f"experience/{curve}", 0.0) for told in steps]
        assert np.any(values), (curve, sorted(steps[0]))
    for curve in OF_OBJECTIVE.get(name, ()):
        assert any(told[curve] for told in steps), (curve, sorted(steps[0]))
