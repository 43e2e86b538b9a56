"""Methods whose curriculum acts train end to end, and their parts are seen to act."""

import json

import numpy as np
import pytest
import training_runs
from everyday import everyday

from rlvr_jax.runs.step import collect
from rlvr_jax.types import replace

FLOAT32 = 1e-6  # one rounding
LOGP = 1e-5  # float32, two programs of the same model

SETTINGS = {
    "dynamic_sampling": ("max_rounds=3",),
    "erpo": ("rise=0.1", "reactivate=true"),
    "drive": ("phases=1,1,1,1", "fractions=0.5,0.2,0.1", "total_steps=4"),
    "rlve": ("min_prompts=1", "threshold=0", "window=1"),
    "mmr1_vas": ("refresh=2", "rated=2", "rating_samples=2"),
    "one_shot": ("prompts=3,5",),
    "w_grpo_pairing": ("candidates=11", "most=3"),
}
ACTED = {
    "dynamic_sampling": lambda lines: lines[-1]["refill/keep_rate"] < 1,
    "erpo": lambda lines: all(line["ask_temperature"] >= 1 for line in lines),
    "drive": lambda lines: [line["pool_prompts"] for line in lines] == [8, 3, 2, 2],
    "rlve": lambda lines: sum(line["levels_raised"] for line in lines) > 0,
    "mmr1_vas": lambda lines: [line["rated"] for line in lines] == [2, 0, 2, 0],
    "one_shot": lambda lines: True,
    "w_grpo_pairing": lambda lines: lines[-1]["rated_prompts"] > 4,
}


def outcomes(run_dir):
    return [json.loads(line) for line in (run_dir / "outcomes.jsonl").read_text().splitlines()]


def settings(name, model, run_dir, **changes):
    given = {"method": name, "hyperparameters": SETTINGS[name], "steps": 4, **changes}
    return training_runs.settings(model, run_dir, **given)


@pytest.mark.thorough
@pytest.mark.parametrize("name", everyday(SETTINGS, "rlve"))
def test_a_run_trains_and_its_curriculum_acts(name, model, tmp_path):
    training_runs.quietly(settings(name, model, tmp_path))
    lines = [line for line in training_runs.metrics(tmp_path) if line["step"]]
    lines = [{name.removeprefix("experience/"): x for name, x in line.items()} for line in lines]
    assert len(lines) == 4 and all(np.isfinite(line["loss"]) for line in lines)
    assert ACTED[name](lines)
    asked = [set(line["number"]) for line in outcomes(tmp_path)]
    if name == "one_shot":
        assert asked == [{3, 5}] * 4
    if name == "drive":
        assert len(asked[-1]) == 2


@pytest.mark.thorough
def test_rows_are_drawn_and_scored_at_the_temperature_of_their_prompt(model):
    run = training_runs.prepared(settings("erpo", model, "unused"))
    state = run.initial_state()
    streak = np.arange(len(run.task.train), dtype=np.int32) % 3
    state = replace(state, host=replace(state.host, data={"heat_solved": streak}))
    batch = collect(run, state, 0).batch
    rollouts, asked = batch.rollouts, np.array([request.number for request in batch.requests])
    wanted = np.broadcast_to(1 + 0.1 * streak[asked][:, None], rollouts.mask.shape)
    on = rollouts.mask
    assert len(np.unique(wanted[on])) > 1
    np.testing.assert_allclose(rollouts.temperature[on], wanted[on], rtol=FLOAT32)
    # At other temperatures than those that they were drawn at, log-probs would be off by far more.
    logp = run.scorer(state.device)(rollouts, ["logp"], "current")["logp"]
    np.testing.assert_allclose(logp[on], rollouts.behaviour_logp[on], atol=LOGP)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_that_stopped_goes_on_with_the_same_prompts(name, model, tmp_path):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    training_runs.quietly(settings(name, model, whole, checkpoint_every=1))
    training_runs.quietly(settings(name, model, parted, checkpoint_every=1, steps=2))
    training_runs.quietly(settings(name, model, parted, checkpoint_every=1, resume=True))
    assert outcomes(parted) == outcomes(whole)
    assert training_runs.contents(parted) == training_runs.contents(whole)
