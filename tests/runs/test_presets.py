"""Presets: those of tasks and methods can be run, and a command line starts from one."""

import pytest

from rlvr_jax import methods
from rlvr_jax.runs import TrainConfig, check_config, parse_config, preset
from rlvr_jax.runs.hyperparameters import method_arguments
from rlvr_jax.runs.resolved import with_rules

TASKS = ("brackets", "operators", "arithmetic", "arithmetic:hard")


@pytest.mark.thorough
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", methods.names())
def test_every_preset_is_a_working_configuration(task, name):
    config = preset(task, name)
    check_config(config)
    methods.recipe(name, **method_arguments(with_rules(config.replace(response_tokens=100))))


@pytest.mark.parametrize(
    "task", ("brackets:train=512", "hinted_brackets", "hinted_brackets:train=9")
)
def test_the_tasks_of_brackets_have_its_presets(task):
    assert preset(task, "kl_cov") == preset("brackets", "kl_cov").replace(task=task)


def test_a_command_line_starts_from_the_preset_of_its_task_and_method():
    line = ["--method", "clip_cov", "--task=brackets", "--seed", "7"]
    assert parse_config(line) == preset("brackets", "clip_cov").replace(seed=7)


def test_the_card_of_a_custom_method_has_presets_too(tmp_path, monkeypatch):
    (tmp_path / "preset_method.py").write_text(
        "from rlvr_jax import Method, methods\n"
        "def slow():\n"
        "    return methods.recipe('reinforce')\n"
        "METHOD = Method(slow, presets={'': {'steps': 7}, 'brackets': {'minibatches': 2}})\n"
    )
    monkeypatch.chdir(tmp_path)
    config = preset("brackets", "preset_method:slow")
    assert (config.steps, config.update.minibatches) == (7, 2)
    assert preset("gsm8k", "preset_method:slow") == TrainConfig.of(
        task="gsm8k", method="preset_method:slow", steps=7, preset="preset_method:slow"
    )


def test_a_preset_is_named_and_can_be_left_out():
    line = ["--method", "clip_cov"]
    assert parse_config(line).preset == "brackets/clip_cov"
    assert preset("brackets", "ppo").preset == "brackets"
    assert preset("gsm8k", "dapo").preset == "dapo"
    assert parse_config([*line, "--no-preset"]) == TrainConfig.of(method="clip_cov")
