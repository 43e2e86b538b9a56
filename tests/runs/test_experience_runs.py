"""Whole runs of methods with every kind of part: they act, stop anywhere, and go on."""

import pytest
import training_runs

from rlvr_jax.runs import TrainConfig, loop

# Sizes with which each part can act within four steps.
SIZES = dict(
    task="hinted_brackets:train=24",
    steps=4,
    prompts_per_step=4,
    samples_per_prompt=4,
    evaluation_prompts=4,
    evaluation_samples=4,
    evaluate_every=4,
    checkpoint_every=1,
    mask_truncated=False,
    learning_rate=1e-3,
    warmup_updates=0,
)


# For each kind of part some methods that have it; what every part keeps is in the contract test.
KINDS = {
    "curricula": "dynamic_sampling one_shot mmr1_vas drive rlve erpo w_grpo_pairing recap olr",
    "draws": "ead hapo_temperature spec_rl delethink supo arpo rose deepsearch rollart t_ppo",
    "stages": "dapo cure ghpo luffy_mixed grpo_roc prof rorecomp expert_iteration brorl vpo hpt",
    "further": "depth_breadth_dars papo prerl dph_rl hybrid_npg rl_plus sdpo empo",
}


def config(folder, name, **changes):
    own = {**SIZES, "method": name, "run_dir": folder, **changes}
    return TrainConfig.of(**own)


class Crash(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("name", " ".join(KINDS.values()).split())
def test_a_run_that_dies_goes_on_in_the_same_bytes(tmp_path, monkeypatch, name):
    dies_and_goes_on(tmp_path, monkeypatch, name)
    rows = training_runs.metrics(tmp_path / "whole")
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert all(row["sampled_tokens"] > 0 for row in rows[1:])


@pytest.mark.slow
def test_a_run_whose_segments_call_a_tool_goes_on_in_the_same_bytes(tmp_path, monkeypatch):
    given = ("tools=None", "instruction=;", "context=8", "summary=5")
    sizes = {"prompts_per_step": 16, "samples_per_prompt": 8}
    changes = {"task": "calculations", "hyperparameters": given, **sizes}
    dies_and_goes_on(tmp_path, monkeypatch, "supo", **changes)
    rows = training_runs.metrics(tmp_path / "whole")
    assert sum(training_runs.values(rows, "experience/tool_tokens")) > 0


@pytest.mark.slow
def test_a_guided_search_of_steps_with_code_goes_on_in_the_same_bytes(tmp_path, monkeypatch):
    # A random policy writes all marks now and then.
    words = [*training_runs.WORDS, "<code>", "<end_of_step>", "<end_of_code>"]
    monkeypatch.setattr(training_runs, "WORDS", words)
    policy = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    given = ("code=true", "candidates=4", "iterations=6", "reply_tokens=4", "guide_rate=0.01")
    changes = {"task": "training_runs:sums", "model": str(policy), "response_tokens": 16}
    dies_and_goes_on(tmp_path, monkeypatch, "rstar_math", hyperparameters=given, **changes)
    rows = training_runs.metrics(tmp_path / "whole")
    assert sum(training_runs.values(rows, "experience/calls")) > 0
    assert sum(training_runs.values(rows, "experience/step_pairs")) > 0
    assert sum(training_runs.values(rows, "experience/imitated_answers")) > 0
    assert max(training_runs.values(rows, "gradient_norm")) > 0


def dies_and_goes_on(tmp_path, monkeypatch, name, **changes):
    """Ends a run in its third step, and has it go on: what is left is that of a whole one."""
    training_runs.quietly(config(tmp_path / "whole", name, **changes))
    step, taken = loop.take_step, []

    def dying(*given):
        taken.append(given)
        if len(taken) == 3:
            raise Crash
        return step(*given)

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(loop, "take_step", dying)
        training_runs.quietly(config(tmp_path / "killed", name, **changes))
    training_runs.quietly(config(tmp_path / "killed", name, resume=True, **changes))
    assert training_runs.contents(tmp_path / "killed") == training_runs.contents(tmp_path / "whole")


def test_a_policy_that_cannot_read_a_hint_is_refused(tmp_path):
    plain = config(tmp_path / "run", "ghpo", task="brackets:train=24")
    with pytest.raises(
        ValueError, match=r"train, view hint\(fraction=0.25.*\) prompts must have words"
    ):
        training_runs.quietly(plain)


@pytest.mark.slow
def test_the_objective_of_one_method_goes_with_the_experience_of_another(tmp_path):
    mixed = config(tmp_path / "run", "clip_cov", experience="ghpo", steps=2)
    training_runs.quietly(mixed)
    names = {name for row in training_runs.metrics(mixed.run_dir) for name in row}
    assert "experience/redrawn_fraction" in names and "covariance" in names


@pytest.mark.thorough
def test_a_run_ends_at_the_step_that_has_drawn_all_the_tokens_it_may(tmp_path):
    whole = config(tmp_path / "whole", "grpo", steps=4)
    training_runs.quietly(whole)
    sampled = [row["sampled_tokens"] for row in training_runs.metrics(whole.run_dir)[1:]]
    budget = int(sampled[0] + sampled[1]) - 1
    short = config(tmp_path / "short", "grpo", steps=40, sampled_tokens=budget)
    summary = training_runs.quietly(short)
    assert summary["steps"] == 2 and summary["sampled_tokens"] == sampled[0] + sampled[1]
    assert "held_out/pass@1" in training_runs.metrics(short.run_dir)[-1]
